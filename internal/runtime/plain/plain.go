// Package plain decodes and encodes plain JSON trees, which consist of nil, booleans, strings, numbers, lists and
// objects with string keys. Arguments and values of programs are nearly always such trees. Results are those of
// encoding/json at half the cost, except that whole numbers beyond float64's precision are decoded as recurgent.Number
// does.
//
// It leaves everything else to encoding/json: values with methods or of a program's own types, deep nesting, strings
// that are not UTF-8, numbers out of range, and all errors. It needs only the standard library and packages of this
// module, because native executables are built from it as well.
package plain

// maxDepth is the nesting depth beyond which a tree is left to encoding/json, which has bounds of its own and detects
// cycles.
const maxDepth = 200

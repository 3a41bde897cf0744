// Package plain decodes and encodes plain JSON trees, of nil, booleans, strings, numbers, lists and objects with string keys, as
// encoding/json does, at half of its cost. Whole numbers that float64 does not hold are the exception: recurgent.Number. Arguments and values of programs are nearly always such trees.
//
// All else is left to encoding/json: values with methods or of types of a program's own, deep nesting, strings that are not UTF-8, numbers
// out of range, and every error. It uses the standard library alone, since native executables are built from it too.
package plain

// maxDepth is the depth of nesting from which a tree is left to encoding/json, which has bounds of its own and detects cycles.
const maxDepth = 200

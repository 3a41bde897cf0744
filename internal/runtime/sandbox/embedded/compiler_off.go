//go:build !embedded

package embedded

// Compiler is empty: this binary has no embedded compiler.
const Compiler = ""

//go:build !embedded

package embedded

// Compiler is empty: this binary carries no compiler.
const Compiler = ""

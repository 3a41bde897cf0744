//go:build go1.27 && !go1.28

package goversion

// Name is the Go version, without a patch release.
const Name = "go1.27"

// EmptyIndexIsZero says that the compiler names the index 0, whatever it was, where an element of an array without elements is read
// from registers (OINDEX in cmd/compile/internal/ssagen/ssa.go).
const EmptyIndexIsZero = false

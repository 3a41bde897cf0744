//go:build cgo

package sandbox

// linkedWithC reports whether this binary needs files of the C library to start.
const linkedWithC = true

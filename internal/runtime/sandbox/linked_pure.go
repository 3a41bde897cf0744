//go:build !cgo

package sandbox

// linkedWithC says that this binary needs files of the C library to start.
const linkedWithC = false

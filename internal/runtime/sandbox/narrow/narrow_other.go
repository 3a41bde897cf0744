//go:build !linux

// Package narrow has nothing to do on this system: it has no filters of system calls.
package narrow

// Process does nothing.
func Process() error { return nil }

//go:build !linux

// Package narrow has nothing to do on this system, where nothing is compiled.
package narrow

// Process does nothing.
func Process() error { return nil }

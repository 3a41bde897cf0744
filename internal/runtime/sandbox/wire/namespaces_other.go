//go:build !linux

package wire

// Namespaces returns nil: this system has no namespaces.
func Namespaces() map[string]string { return nil }

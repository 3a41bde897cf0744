//go:build !linux

package wire

// Namespaces returns nil: this system has none.
func Namespaces() map[string]string { return nil }

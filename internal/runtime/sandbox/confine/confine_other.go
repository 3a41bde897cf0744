//go:build !linux

package confine

func hide(Scope) error { return nil }

// NameThread does nothing on this system.
func NameThread() {}

//go:build !linux

package compiled

func probed() map[string]string { return nil }

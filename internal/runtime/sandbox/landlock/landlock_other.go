//go:build !linux

// Package landlock has nothing to say on this system.
package landlock

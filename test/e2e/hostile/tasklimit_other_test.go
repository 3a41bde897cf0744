//go:build !linux

package hostile

func joinTaskGroup() {} // there are no control groups

//go:build !go1.27

package goversion

// Name is the Go version without a patch release.
const Name = "go1.26"

const newest = false

//go:build !go1.26 || go1.28

package goversion

const Name int = "this Go version is not known to the engine: see docs/upgrading-go.md"

// Package goversion names the Go version that the engine is built with. It compiles only with a version whose runtime
// the engine knows, because package interp mirrors structures of the Go runtime, and export data and symbol tables are
// specific to a version. docs/upgrading-go.md describes how to add a version. Patch releases need no change.
package goversion

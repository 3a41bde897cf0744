// Package goversion names the Go version that the engine is built with. It compiles only with a version whose runtime the engine knows:
// package interp mirrors structures of the Go runtime, and export data and symbol tables are those of one version.
// docs/upgrading-go.md says how a version becomes known. Patch releases need nothing.
package goversion

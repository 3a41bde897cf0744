// Package embedded holds the runner program (cmd/recurgent-runner) in binaries that were built with it, which scripts/build does. In
// others it holds nothing, and the daemon executes itself.
package embedded

// File is the path of the runner program where tests of a whole daemon have built one, so that the binary need not carry it.
var File string

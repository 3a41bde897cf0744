// Package embedded holds the runner program (cmd/recurgent-runner) in binaries that were built with it, which scripts/build does. In
// others it holds nothing, and the daemon executes itself.
package embedded

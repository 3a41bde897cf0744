// Package embedded holds the programs of runners (cmd/recurgent-runner) and launchers (cmd/recurgent-launcher) in binaries that were built with them, which scripts/build does. In
// others it holds nothing, and the daemon executes itself.
package embedded

// File and LauncherFile are the paths of the programs where tests of a whole daemon have built them, so that the binary need not carry any.
var File, LauncherFile string

// Package embedded holds what a binary carries that was built for it, which scripts/build does: the programs of runners (cmd/recurgent-runner) and launchers (cmd/recurgent-launcher), and
// a Go compiler. In other binaries it holds nothing: the daemon executes itself, and compiles with an installed toolchain.
package embedded

// File and LauncherFile are the paths of the programs where tests of a whole daemon have built them, so that the binary need not carry any.
var File, LauncherFile string

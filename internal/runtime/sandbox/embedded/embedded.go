// Package embedded holds the files that scripts/build embeds in the daemon's binary: the programs of runners
// (cmd/recurgent-runner) and launchers (cmd/recurgent-launcher), and a Go compiler. In other binaries they are empty;
// the daemon then executes itself and compiles with an installed toolchain.
package embedded

// File and LauncherFile are paths of the two programs, set by tests of a whole daemon, which build them separately.
// They are empty otherwise.
var File, LauncherFile string

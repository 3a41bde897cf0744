//go:build race

package wire

// RaceBuild says that the binary carries the race detector, which maps more memory than RLIMIT_DATA allows and
// makes a few more system calls. Only tests are built so.
const RaceBuild = true

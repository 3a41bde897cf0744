//go:build race

package wire

// RaceBuild reports whether the binary contains the race detector, which maps more memory than RLIMIT_DATA allows and
// makes additional system calls. Only tests are built that way.
const RaceBuild = true

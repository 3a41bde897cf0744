//go:build race

package sandbox

// raceBuild says that the binary carries the race detector, which maps more memory than RLIMIT_DATA allows and
// makes a few more system calls. Only tests are built so.
const raceBuild = true

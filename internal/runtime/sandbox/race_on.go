//go:build race

package sandbox

// raceBuild says that the binary carries the race detector, which maps more memory than RLIMIT_DATA allows and
// makes a few more system calls. Only tests are built so.
const raceBuild = true

// runnerEnv is the environment of runners: nothing of the daemon's, only that the detector need not wait a second at exit.
func runnerEnv() []string { return []string{"GORACE=atexit_sleep_ms=0"} }

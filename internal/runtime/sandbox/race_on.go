//go:build race

package sandbox

import "time"

// raceBuild says that the binary carries the race detector, which maps more memory than RLIMIT_DATA allows and
// makes a few more system calls. Only tests are built so.
const raceBuild = true

// raceSlack is what a process takes longer to start.
const raceSlack = 5 * time.Second

// runnerEnv is the environment of runners: nothing of the daemon's, only that the detector need not wait a second at exit.
func runnerEnv() []string { return []string{"GORACE=atexit_sleep_ms=0"} }

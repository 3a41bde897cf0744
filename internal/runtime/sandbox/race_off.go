//go:build !race

package sandbox

import "time"

// raceBuild says that the binary carries the race detector. See race_on.go.
const raceBuild = false

// raceSlack is what a process with the detector takes longer to start.
const raceSlack time.Duration = 0

// runnerEnv is the environment of runners: empty, not nil, which would hand down our keys.
func runnerEnv() []string { return []string{} }

//go:build !race

package sandbox

// raceBuild says that the binary carries the race detector. See race_on.go.
const raceBuild = false

// runnerEnv is the environment of runners: empty, not nil, which would hand down our keys.
func runnerEnv() []string { return []string{} }

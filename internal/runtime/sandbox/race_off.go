//go:build !race

package sandbox

// raceBuild says that the binary carries the race detector. See race_on.go.
const raceBuild = false

//go:build !race

package wire

// RaceBuild says that the binary carries the race detector. See race_on.go.
const RaceBuild = false

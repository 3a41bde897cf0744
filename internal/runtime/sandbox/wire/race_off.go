//go:build !race

package wire

// RaceBuild reports whether the binary contains the race detector. See race_on.go.
const RaceBuild = false

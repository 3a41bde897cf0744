package sandbox

import (
	"os"
)

// runScript is a runner that keeps to the protocol up to a point and then misbehaves.
func runScript(name string) int {
	_ = name
	os.Exit(9)
	return 9
}

//go:build !embedded || !linux

package embedded

// Runner and Launcher are empty: this binary has no embedded executables.
const (
	Runner   = ""
	Launcher = ""
)

//go:build !embedded || !linux

package embedded

// Runner and Launcher are empty: this binary carries no executable file.
const (
	Runner   = ""
	Launcher = ""
)

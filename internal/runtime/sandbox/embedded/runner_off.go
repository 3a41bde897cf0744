//go:build !embedrunner || !linux

package embedded

// Runner is empty: this binary carries no executable file.
const Runner = ""

//go:build !enginecheck

package interp

// checkRuns has the types of a program checked after each of its runs, too: go test -tags enginecheck.
const checkRuns = false

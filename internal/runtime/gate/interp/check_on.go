//go:build enginecheck

package interp

// checkRuns has the types of a program checked after each of its runs, too: those that only a run makes, and the pointer masks that the
// runtime builds when it first needs them.
const checkRuns = true

//go:build !race

package locks

// Race reports whether the race detector is built in; lock orders are checked then.
const Race = false

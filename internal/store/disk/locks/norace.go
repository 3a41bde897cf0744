//go:build !race

package locks

// Race says whether this is a build with the race detector, in which locks are checked without being asked.
const Race = false

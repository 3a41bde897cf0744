//go:build race

package locks

// Race says whether this is a build with the race detector, in which locks are checked.
const Race = true

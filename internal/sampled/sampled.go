// Package sampled selects the cases that a table test runs if its cases are similar to each other: all of them in the
// third tier, a few with testing.Short (docs/tests.md).
package sampled

import (
	"iter"
	"maps"
	"slices"
	"testing"
)

// Of returns the cases to run. With testing.Short it returns every nth one, starting with the first; otherwise it
// returns all. It does not change the list.
func Of[T any](all []T, n int) []T {
	if !testing.Short() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// Map iterates over the cases to run in the order of their names. With testing.Short it yields every nth one, starting
// with the first; otherwise it yields all.
func Map[T any](all map[string]T, n int) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range Of(slices.Sorted(maps.Keys(all)), n) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}

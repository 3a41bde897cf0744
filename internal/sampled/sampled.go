// Package sampled picks the cases of tests whose cases are like each other: all of them in the third tier, a few where testing.Short (docs/tests.md).
package sampled

import (
	"iter"
	"maps"
	"slices"
	"testing"
)

// Of returns the cases to run: each n-th of them, from the first, where testing.Short, else all. It does not change the list.
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

// Map visits the cases to run in the order of their names: each n-th of them, from the first, where testing.Short, else all.
func Map[T any](all map[string]T, n int) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, name := range Of(slices.Sorted(maps.Keys(all)), n) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}

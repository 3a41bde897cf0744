// Package cache keeps values in memory up to a bound and evicts those that are used least. It hides otter behind an
// interface to save build time: the compiler instantiates otter's generic code again in each package that embeds one of
// its caches, even indirectly, which takes some ten seconds of processor time each.
package cache

import (
	"fmt"
	"iter"

	"github.com/maypok86/otter/v2"
)

// A Cache holds values by key. It may be used concurrently. The bound is enforced shortly after Set, not by it.
type Cache[K comparable, V any] interface {
	// GetIfPresent returns the value of the key and whether the key is present.
	GetIfPresent(K) (V, bool)
	// Set stores the value. It returns the previous value and false, or the new value and true if there was none.
	Set(K, V) (V, bool)
	// Invalidate removes the key. It returns the removed value and whether the key was present.
	Invalidate(K) (V, bool)
	// InvalidateAll removes all keys.
	InvalidateAll()
	// All iterates over the entries in no particular order. Concurrent additions and removals may or may not be seen.
	All() iter.Seq2[K, V]
	// Keys is All without the values.
	Keys() iter.Seq[K]
	// CleanUp evicts at once what exceeds the bound.
	CleanUp()
	// EstimatedSize returns the number of keys, including those that are about to be evicted.
	EstimatedSize() int
	// StopAllGoroutines stops the cache's background goroutines and reports whether there were any.
	StopAllGoroutines() bool
}

// New returns a cache of up to most values. It panics if most is below 1.
func New[K comparable, V any](most int) Cache[K, V] {
	if most < 1 { // otter takes 0 for no bound
		panic(fmt.Sprintf("cache: a bound of %d values", most))
	}
	return otter.Must(&otter.Options[K, V]{MaximumSize: most})
}

// NewWeighed returns a cache that bounds the total weight of its values by most. It returns an error if most is 0.
func NewWeighed[K comparable, V any](most uint64, weigh func(K, V) uint32) (Cache[K, V], error) {
	return otter.New(&otter.Options[K, V]{MaximumWeight: most, Weigher: weigh})
}

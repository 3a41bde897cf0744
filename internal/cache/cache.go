// Package cache keeps values in memory within a bound and drops those that are used least. It is otter behind an interface: the compiler
// writes otter's generic code anew in each package that embeds one of its caches, however deep: some ten seconds of the processor
// for each.
package cache

import (
	"iter"

	"github.com/maypok86/otter/v2"
)

// A Cache holds values by key. It may be used concurrently.
type Cache[K comparable, V any] interface {
	// GetIfPresent returns the value of the key, and whether it is there.
	GetIfPresent(K) (V, bool)
	// Set stores the value. It returns the one that was there before, or the new one and true.
	Set(K, V) (V, bool)
	// Invalidate removes the key. It returns the value that was there, and whether there was one.
	Invalidate(K) (V, bool)
	// InvalidateAll removes all keys.
	InvalidateAll()
	// All iterates over what is there, in no order; what is added or removed meanwhile may or may not be seen.
	All() iter.Seq2[K, V]
	// Keys is All without the values.
	Keys() iter.Seq[K]
	// CleanUp drops at once what is over the bound.
	CleanUp()
	// EstimatedSize returns how many keys there are, those to be dropped included.
	EstimatedSize() int
	// StopAllGoroutines ends what the cache does by itself; it reports whether there was such a thing.
	StopAllGoroutines() bool
}

// New returns a cache of at most so many values; fewer than one is a mistake of the caller's, at which it panics.
func New[K comparable, V any](most int) Cache[K, V] {
	return otter.Must(&otter.Options[K, V]{MaximumSize: most})
}

// NewWeighed returns a cache of values that weigh at most so much together.
func NewWeighed[K comparable, V any](most uint64, weigh func(K, V) uint32) (Cache[K, V], error) {
	return otter.New(&otter.Options[K, V]{MaximumWeight: most, Weigher: weigh})
}

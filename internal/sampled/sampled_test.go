package sampled

import (
	"maps"
	"slices"
	"testing"
)

// A short run takes every nth case, a full run all of them.
func TestSamples(t *testing.T) {
	list, named := []int{1, 2, 3, 4, 5}, map[string]int{"a": 1, "b": 2, "c": 3, "d": 4}
	want, wantNamed := list, named
	if testing.Short() {
		want, wantNamed = []int{1, 4}, map[string]int{"a": 1, "d": 4}
	}
	if got := Of(list, 3); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := maps.Collect(Map(named, 3)); !maps.Equal(got, wantNamed) {
		t.Errorf("got %v, want %v", got, wantNamed)
	}
	for range Map(named, 1) {
		break
	}
}

package forge

import (
	"slices"
	"testing"
)

// The keys of a purpose are the words in braces. Its words are the keys and the other words, except single letters.
func TestWordsOfAPurpose(t *testing.T) {
	t.Parallel()
	all, keys := words("a list of {name, unit_price, x} for each Item")
	if want := []string{"name", "unit_price", "x"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
	for word, in := range map[string]bool{"list": true, "unit_price": true, "Item": true, "x": true, "a": false} {
		if slices.Contains(all, word) != in {
			t.Errorf("%q in %q: not %t", word, all, in)
		}
	}
}

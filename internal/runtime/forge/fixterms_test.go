package forge

import (
	"slices"
	"testing"
)

// The keys of a purpose are the words in braces.
func TestKeysOfAPurpose(t *testing.T) {
	t.Parallel()
	got := keys("a list of {name, unit_price, x} for each Item")
	if want := []string{"name", "unit_price", "x"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
}

package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Texts that PostgreSQL cannot index still have a key, and no two texts share one.
func TestKey(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", longestKey)
	seen := map[string]string{}
	for _, s := range []string{"", "a", "a\x00b", "a\x00c", "\xff", "\xfe", long, long + "x", "\x01", odd + "a",
		key("a\x00b"), "movie finder", "ünïcode 🙂"} {
		k := key(s)
		if !utf8.ValidString(k) || strings.ContainsRune(k, 0) || len(k) > longestKey {
			t.Errorf("the key of %q is %q", s, k)
		}
		if other, twice := seen[k]; twice {
			t.Errorf("%q and %q share a key", s, other)
		}
		seen[k] = s
	}
	if key("movie finder") != "movie finder" {
		t.Error("a plain name is not its own key")
	}
}

// Times outside of the range of a call's timestamp are rejected.
func TestStamp(t *testing.T) {
	t.Parallel()
	for text, valid := range map[string]bool{"2026-11-21T09:00:00.000Z": true, "": false, "yesterday": false,
		"0000-01-01T00:00:00Z": false} {
		if got := stamp(text); (got != nil) != valid {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

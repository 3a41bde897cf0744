package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/store"
)

// FuzzKey checks that the key of any text fits into an index of PostgreSQL, and that only equal texts share a key.
func FuzzKey(f *testing.F) {
	f.Add("a\x00b", "a\x00c")
	f.Add(odd+"a", strings.Repeat("ä", longestKey))
	f.Add("\xff", "\xfe")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []string{a, b} {
			if k := key(s); !utf8.ValidString(k) || strings.ContainsRune(k, 0) || len(k) > longestKey {
				t.Errorf("the key of %q is %q", s, k)
			}
		}
		if (key(a) == key(b)) != (a == b) {
			t.Errorf("%q and %q have the keys %q and %q", a, b, key(a), key(b))
		}
	})
}

// FuzzCursor parses any text as a place in the change feed, and formats the result again.
func FuzzCursor(f *testing.F) {
	f.Add("12.34")
	f.Add("18446744073709551615.-1")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseCursor(store.Cursor(text))
		if err != nil {
			return
		}
		again, err := parseCursor(p.cursor())
		if err != nil || again != p || p.before(again) {
			t.Errorf("%q is %+v, written as %q and read as %+v, %v", text, p, p.cursor(), again, err)
		}
	})
}

// FuzzStamp parses any text as a time. Times that PostgreSQL cannot store must be rejected.
func FuzzStamp(f *testing.F) {
	f.Add("2026-11-23T05:00:00.123456789Z")
	f.Add("0000-01-01T00:00:00Z")
	f.Add("9999-12-31T23:59:59-23:59")
	f.Fuzz(func(t *testing.T, text string) {
		if at := stamp(text); at != nil && (at.UTC().Year() < 0 || at.UTC().Year() > 10_000) {
			t.Errorf("%q is %s", text, at)
		}
	})
}

// FuzzArtifact decodes any bytes as the two parts of an artifact. The result is an error, or an artifact that can be
// split into its parts again.
func FuzzArtifact(f *testing.F) {
	f.Add([]byte(`{"role":"r","method_name":"m","history":[{"id":"gen-1"}]}`),
		[]byte(`{"history":[{"id":"gen-1","code":"x"}]}`))
	f.Add([]byte(`{"history":[null]}`), []byte(`{"history":[null]}`))
	f.Add([]byte(`{}`), []byte(`{"history":[{}]}`))
	f.Fuzz(func(t *testing.T, head, body []byte) {
		a, err := decodeArtifact(head, body)
		if err != nil {
			return
		}
		if _, err := join(headOf(a), bodyOf(a)); err != nil {
			t.Errorf("%s, %s: %v", head, body, err)
		}
	})
}

package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

// longestKey bounds a column of a key, in bytes: PostgreSQL refuses entries of an index from 2,704 on.
const longestKey = 800

// key returns the text that stands for s in a column: s itself, or a digest where PostgreSQL cannot hold it (U+0000, not UTF-8) or where it is
// too long for an index. What such a column says is read from the document beside it.
func key(s string) string {
	if len(s) <= longestKey && utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, odd) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return odd + hex.EncodeToString(sum[:])
}

const odd = "\x01" // begins what key made

// keys is key of each.
func keys(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = key(s)
	}
	return out
}

// stamp returns the time of a stored timestamp, nil for a text that is none, which lies in no bounded span.
func stamp(text string) *time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}

package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"
)

// longestKey is the maximum length of a key column in bytes. PostgreSQL rejects index entries of 2,704 bytes and more.
const longestKey = 800

// key returns the text that represents s in a column. It is s itself, or a digest if PostgreSQL cannot store s (U+0000,
// invalid UTF-8) or s is too long for an index. The original text is in the document of the row.
func key(s string) string {
	if len(s) <= longestKey && utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, odd) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return odd + hex.EncodeToString(sum[:])
}

const odd = "\x01" // prefix of digests

// keys applies key to each text.
func keys(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = key(s)
	}
	return out
}

// stamp returns the time of a stored timestamp, or nil if the text is not a timestamp. nil lies in no bounded range.
func stamp(text string) *time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 || t.Year() > 9999 {
		return nil
	}
	return &t
}

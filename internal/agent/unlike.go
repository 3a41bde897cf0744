package agent

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// unlikeDepth is enough for tables.
const unlikeDepth = 3

// unlike reports whether two JSON values are different in any case, however they are written. It looks for the first plain difference
// without decoding, in at most depth levels of arrays, each of which it reads once; false says nothing.
func unlike(a, b json.RawMessage, depth int) bool {
	i, j := rawjson.SkipSpace(a, 0), rawjson.SkipSpace(b, 0)
	if i == len(a) || j == len(b) {
		return false
	}
	a, b = a[i:], b[j:]
	kind := Kind(a)
	if kind != Kind(b) {
		return true
	}
	switch kind {
	case "string", "number":
		return plainScalar(a) && plainScalar(b) && !bytes.Equal(bytes.TrimRight(a, " \t\r\n"),
			bytes.TrimRight(b, " \t\r\n"))
	case "array":
		return depth > 0 && unlikeLists(a, b, depth-1)
	}
	return false
}

// plainScalar reports whether a string or number can be written in one way only: a string of ASCII without escapes, an integer.
func plainScalar(v []byte) bool {
	for _, c := range v {
		if c == '\\' || c >= 0x80 || v[0] != '"' && (c == '.' || c == 'e' || c == 'E') {
			return false
		}
	}
	return true
}

// unlikeLists reports whether two arrays have different lengths, or elements that differ in any case before that is seen.
func unlikeLists(a, b []byte, depth int) bool {
	i, j := rawjson.SkipSpace(a, 1), rawjson.SkipSpace(b, 1)
	for i < len(a) && j < len(b) && a[i] != ']' && b[j] != ']' {
		endA, endB := rawjson.ValueEnd(a, i), rawjson.ValueEnd(b, j)
		if endA <= i || endB <= j || endA > len(a) || endB > len(b) {
			return false
		}
		if unlike(a[i:endA], b[j:endB], depth) {
			return true
		}
		i, j = rawjson.SkipSpace(a, endA), rawjson.SkipSpace(b, endB)
		if i < len(a) && a[i] == ',' {
			i = rawjson.SkipSpace(a, i+1)
		}
		if j < len(b) && b[j] == ',' {
			j = rawjson.SkipSpace(b, j+1)
		}
	}
	return i < len(a) && j < len(b) && (a[i] == ']') != (b[j] == ']')
}

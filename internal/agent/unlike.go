package agent

import (
	"bytes"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// unlikeDepth is deep enough for a list of rows.
const unlikeDepth = 3

// unlike reports whether two JSON values certainly differ. It looks for an obvious difference without decoding,
// descending at most depth levels of arrays and reading each once. False is inconclusive.
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

// plainScalar reports whether a string or number has only one spelling: an ASCII string without escapes, or an integer.
func plainScalar(v []byte) bool {
	for _, c := range v {
		if c == '\\' || c >= 0x80 || v[0] != '"' && (c == '.' || c == 'e' || c == 'E') {
			return false
		}
	}
	return true
}

// unlikeLists reports whether two arrays certainly differ, in an element or in length. False is inconclusive.
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

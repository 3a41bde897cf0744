// Package rawjson walks JSON text without decoding it, for code that inspects the values of every call. Apart from the
// keys that Members decodes, it does not allocate. The text must be valid JSON. On invalid text the functions stay
// within bounds, but their results are meaningless. Each function reads its text once.
package rawjson

import "encoding/json"

// StringEnd returns the index after the string that begins at i.
func StringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// SkipSpace returns the index of the first byte at or after i that is not white space, or len(raw).
func SkipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// ValueEnd returns the index after the value that begins at i.
func ValueEnd(raw []byte, i int) int {
	for depth := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = StringEnd(raw, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of the enclosing value
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(raw)
}

// Members calls f for every member of the object raw, in source order. It does nothing if raw is not an object. value
// is a slice of raw.
func Members(raw []byte, f func(key string, value []byte)) {
	i := SkipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	for i++; ; i++ { // after the brace or a comma
		i = SkipSpace(raw, i)
		if i >= len(raw) || raw[i] != '"' {
			return
		}
		end := StringEnd(raw, i)
		var key string
		if json.Unmarshal(raw[i:end], &key) != nil {
			return
		}
		i = SkipSpace(raw, end)
		if i >= len(raw) || raw[i] != ':' {
			return
		}
		i = SkipSpace(raw, i+1)
		end = ValueEnd(raw, i)
		f(key, raw[i:end])
		i = SkipSpace(raw, end)
		if i >= len(raw) || raw[i] != ',' {
			return
		}
	}
}

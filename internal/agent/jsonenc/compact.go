package jsonenc

import (
	"encoding/json"
	"unicode/utf8"
)

// Compact returns valid JSON without insignificant white space: v itself if there is none, otherwise a copy.
func Compact(v json.RawMessage) json.RawMessage {
	at := 0
	for at < len(v) && !space(v[at]) {
		at = behind(v, at)
	}
	if at == len(v) {
		return v
	}
	out := append(make(json.RawMessage, 0, len(v)), v[:at]...)
	for at < len(v) {
		if space(v[at]) {
			at++
			continue
		}
		end := behind(v, at)
		out = append(out, v[at:end]...)
		at = end
	}
	return out
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// behind returns the index after the token at i: after a string, or after other characters up to a string or white
// space.
func behind(v []byte, i int) int {
	if v[i] != '"' {
		for i++; i < len(v) && v[i] != '"' && !space(v[i]); i++ {
		}
		return i
	}
	for i++; i < len(v) && v[i] != '"'; i++ {
		if v[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(v))
}

// appendEscaped appends JSON that is clean except for characters that encoding/json escapes, and escapes these.
func appendEscaped(b, v []byte) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := 0; i < len(v); i++ {
		c := v[i]
		if escaped[c] || c == '"' || c == '\\' {
			continue
		}
		switch {
		case c == 0xE2 && isSeparator(v[i:]):
			b = append(append(b, v[start:i]...), `\u202`...)
			b = append(b, hex[v[i+2]&0xF])
			i += 2
		case c == 0xE2:
			continue
		default:
			b = append(append(b, v[start:i]...), '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		start = i + 1
	}
	return append(b, v[start:]...)
}

// isSeparator reports whether v begins with U+2028 or U+2029, which JavaScript treats as line terminators.
func isSeparator(v []byte) bool {
	r, _ := utf8.DecodeRune(v)
	return r == '\u2028' || r == '\u2029'
}

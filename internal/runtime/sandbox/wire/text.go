package wire

import "unicode/utf8"

// BoundText returns s as valid UTF-8. If s is longer than limit bytes, it is cut at a character boundary within them
// and " …" is appended.
func BoundText(s []byte, limit int) string {
	if len(s) > limit {
		s = s[:limit]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if n := len(s); n > 0 && !utf8.Valid(s[n-1:]) {
			s = s[:n-1]
		}
		return ValidText(s) + " …"
	}
	return ValidText(s)
}

// ValidText returns s with U+FFFD in place of each byte that is not valid UTF-8.
func ValidText(s []byte) string {
	if utf8.Valid(s) {
		return string(s)
	}
	out := make([]rune, 0, len(s))
	for _, r := range string(s) {
		out = append(out, r)
	}
	return string(out)
}

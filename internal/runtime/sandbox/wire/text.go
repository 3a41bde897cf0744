package wire

import "unicode/utf8"

// more ends a text that BoundText has cut.
const more = " …"

// BoundText returns s as valid UTF-8 of at most limit bytes. If it is longer, it is cut at a character boundary, and
// " …" is appended if limit has room for that.
func BoundText(s []byte, limit int) string {
	// ValidText shortens nothing, so one byte more than limit is enough to find that the text is too long.
	text := ValidText(s[:min(len(s), limit+1)])
	if len(text) <= limit {
		return text
	}
	end, mark := limit-len(more), more
	if end < 0 {
		end, mark = limit, ""
	}
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
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

package reply

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// decode returns the value of the string by its style.
func (t text) decode() string {
	switch t.style {
	case styleRaw:
		return t.raw
	case stylePython:
		return unescape(t.raw, pythonEscapes)
	}
	return unescape(t.raw, jsonEscapes)
}

// Escapes by the character after the backslash. Unknown escapes are kept: they are invalid JSON, and whether the result
// is a program decides what was meant.
var (
	jsonEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", '"': `"`, '\\': `\`,
		'/': "/", '\'': "'", '`': "`"}
	pythonEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", '"': `"`, '\\': `\`,
		'\'': "'", '`': "`",
		'a': "\a", 'v': "\v", '0': "\x00", '\n': ""}
	quoteEscapes = map[byte]string{'"': `"`}
)

// unescape replaces the escapes of a string and keeps unknown ones.
func unescape(raw string, escapes map[byte]string) string {
	if !strings.Contains(raw, `\`) {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			continue
		}
		i++
		if to, ok := escapes[raw[i]]; ok {
			b.WriteString(to)
			continue
		}
		if r, n := unicodeEscape(raw[i:]); n > 0 && escapes['n'] != "" {
			b.WriteRune(r)
			i += n - 1
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(raw[i])
	}
	return b.String()
}

// unicodeEscape parses uXXXX, with the second half of a surrogate pair if there is one, and returns its length, or 0.
func unicodeEscape(s string) (rune, int) {
	high, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if high >= 0xd800 && high < 0xdc00 && len(s) > 5 && s[5] == '\\' {
		if low, ok := hex4(s[6:]); ok && low >= 0xdc00 && low < 0xe000 {
			return (high-0xd800)<<10 + (low - 0xdc00) + 0x10000, 11
		}
	}
	if !utf8.ValidRune(high) {
		high = utf8.RuneError
	}
	return high, 5
}

func hex4(s string) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:5], 16, 32)
	return rune(n), err == nil
}

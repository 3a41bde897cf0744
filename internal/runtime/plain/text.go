package plain

import (
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string. It copies only strings with escapes.
func (d *decoder) str() (string, bool) {
	start := d.at + 1
	ascii := true
	for i := start; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '"':
			d.at = i + 1
			s := d.text[start:i]
			return s, ascii || utf8.ValidString(s)
		case c == '\\':
			return d.escaped(start, i)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// escaped reads the string that begins at start and whose first escape is at i.
func (d *decoder) escaped(start, i int) (string, bool) {
	b := []byte(d.text[start:i])
	for i < len(d.text) {
		c := d.text[i]
		i++
		switch {
		case c == '"':
			d.at = i
			return string(b), utf8.Valid(b)
		case c < ' ':
			return "", false
		case c != '\\':
			b = append(b, c)
			continue
		case i == len(d.text):
			return "", false
		}
		c = d.text[i]
		i++
		switch c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, n := codePoint(d.text[i:])
			if n == 0 {
				return "", false
			}
			b = utf8.AppendRune(b, r)
			i += n
		default:
			return "", false
		}
	}
	return "", false
}

// codePoint decodes the text after \u: four hexadecimal digits, or a pair of surrogates. It returns the number of bytes
// read, or 0 if the text is neither.
func codePoint(s string) (rune, int) {
	r, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(s) < 10 || s[4:6] != `\u` {
		return 0, 0
	}
	low, ok := hex4(s[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 10
}

func hex4(s string) (rune, bool) {
	if len(s) < 4 {
		return 0, false
	}
	var r rune
	for i := range 4 {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

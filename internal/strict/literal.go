package strict

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// literal reads true, false or null.
func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return s.fail("has an unknown word where a value is needed")
	}
	s.pos += len(word)
	return nil
}

// unescaped marks the ASCII characters that a string may contain unescaped.
var unescaped = func() (t [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// text reads a string, and reports whether it contains escapes.
func (s *scanner) text() (escaped bool, err error) {
	s.pos++
	for s.pos < len(s.data) {
		// most bytes are plain ASCII
		if unescaped[s.data[s.pos]] {
			s.pos++
			continue
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return escaped, nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return escaped, err
			}
		case c < 0x20:
			return escaped, s.fail("has a control character in a string; escape it")
		default:
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return escaped, s.fail("is not valid UTF-8")
			}
			s.pos += size
		}
	}
	return escaped, s.fail("ends within a string")
}

// escape reads an escape sequence. It overwrites a lone surrogate with fffd in the input, since UTF-8 cannot encode it.
func (s *scanner) escape() error {
	if s.pos+1 == len(s.data) {
		return s.fail("ends within a string")
	}
	switch s.data[s.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos += 2
		return nil
	case 'u':
	default:
		return s.fail("has an unknown escape in a string")
	}
	unit, ok := hex4(s.data[s.pos+2:])
	if !ok {
		return s.fail(`needs four hexadecimal digits after \u`)
	}
	if unit >= 0xd800 && unit < 0xe000 {
		// a high surrogate may be followed by a low one: together they are one character
		if unit < 0xdc00 && bytes.HasPrefix(s.data[s.pos+6:], []byte(`\u`)) {
			if low, ok := hex4(s.data[s.pos+8:]); ok && low >= 0xdc00 && low < 0xe000 {
				s.pos += 12
				return nil
			}
		}
		copy(s.data[s.pos+2:], "fffd") // a lone surrogate becomes U+FFFD, of the same length
	}
	s.pos += 6
	return nil
}

// hex4 parses four hexadecimal digits at the start of b.
func hex4(b []byte) (n rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

// number reads a number. It parses one only if it may exceed the range of float64.
func (s *scanner) number() error {
	start := s.pos
	s.at('-')
	if !s.at('0') && s.digits() == 0 {
		return s.fail("has a number without digits")
	}
	if s.at('.') && s.digits() == 0 {
		return s.fail("has a number without digits behind the point")
	}
	exponent := false
	if s.at('e') || s.at('E') {
		exponent = true
		if !s.at('+') {
			s.at('-')
		}
		if s.digits() == 0 {
			return s.fail("has a number without digits in the exponent")
		}
	}
	if s.pos-start > MaxNumber {
		return s.fail("has a number of more than " + strconv.Itoa(MaxNumber) + " characters")
	}
	// other numbers cannot exceed the range
	if exponent || s.pos-start > surelyFloat {
		if _, err := strconv.ParseFloat(string(s.data[start:s.pos]), 64); err != nil {
			return s.fail("has a number that no 64-bit float can hold")
		}
	}
	return nil
}

func (s *scanner) digits() int {
	start := s.pos
	for s.pos < len(s.data) && s.data[s.pos] >= '0' && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - start
}

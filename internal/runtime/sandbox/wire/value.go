package wire

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// Errors of CheckValue.
var (
	ErrNotJSON    = errors.New("not one JSON value")
	ErrTooDeep    = errors.New("nested too deeply")
	ErrNotUTF8    = errors.New("a string that is not UTF-8")
	ErrNotCompact = errors.New("insignificant whitespace")
	ErrBigNumber  = errors.New("a number that no float can hold")
)

// CheckValue returns nil if b is exactly one compact JSON value of at most depth levels, in valid UTF-8, with no number
// beyond the range of a float64. It runs in every call and does not allocate for ordinary values.
func CheckValue(b []byte, depth int) error {
	c := checker{b: b, depth: depth}
	if err := c.value(); err != nil {
		return err
	}
	if c.i != len(b) {
		return ErrNotJSON
	}
	return nil
}

type checker struct {
	b     []byte
	i     int
	depth int
}

func (c *checker) peek() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

func (c *checker) value() error {
	switch ch := c.peek(); ch {
	case '{':
		return c.list('}', true)
	case '[':
		return c.list(']', false)
	case '"':
		return c.str()
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	case ' ', '\t', '\r', '\n':
		return ErrNotCompact
	}
	return c.number()
}

// list checks an object or an array. The depth bound ends the recursion.
func (c *checker) list(closer byte, keys bool) error {
	if c.depth == 0 {
		return ErrTooDeep
	}
	c.depth--
	c.i++
	if c.peek() == closer {
		c.i++
		c.depth++
		return nil
	}
	for {
		if keys {
			if c.peek() != '"' {
				return ErrNotJSON
			}
			if err := c.str(); err != nil {
				return err
			}
			if c.peek() != ':' {
				return ErrNotJSON
			}
			c.i++
		}
		if err := c.value(); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.i++
		case closer:
			c.i++
			c.depth++
			return nil
		default:
			return ErrNotJSON
		}
	}
}

func (c *checker) word(w string) error {
	if len(c.b)-c.i < len(w) || string(c.b[c.i:c.i+len(w)]) != w {
		return ErrNotJSON
	}
	c.i += len(w)
	return nil
}

// unescaped marks the ASCII characters that need no escape in a JSON string.
var unescaped = func() (t [256]bool) {
	for ch := byte(' '); ch < utf8.RuneSelf; ch++ {
		t[ch] = ch != '"' && ch != '\\'
	}
	return t
}()

// str checks a string. Validity of UTF-8 is checked once, at the end.
func (c *checker) str() error {
	start := c.i + 1
	ascii := true
	for i := start; i < len(c.b); i++ {
		switch ch := c.b[i]; {
		case unescaped[ch]:
		case ch == '"':
			if !ascii && !utf8.Valid(c.b[start:i]) {
				return ErrNotUTF8
			}
			c.i = i + 1
			return nil
		case ch == '\\':
			i++
			if i == len(c.b) {
				return ErrNotJSON
			}
			switch c.b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(c.b)-i < 5 || !isHex(c.b[i+1:i+5]) {
					return ErrNotJSON
				}
				i += 4
			default:
				return ErrNotJSON
			}
		case ch < ' ':
			return ErrNotJSON
		case ch >= utf8.RuneSelf:
			ascii = false
		}
	}
	return ErrNotJSON
}

func isHex(b []byte) bool {
	for _, ch := range b {
		if !('0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'f' || 'A' <= ch && ch <= 'F') {
			return false
		}
	}
	return true
}

func (c *checker) digits() bool {
	from := c.i
	for c.i < len(c.b) && '0' <= c.b[c.i] && c.b[c.i] <= '9' {
		c.i++
	}
	return c.i > from
}

func (c *checker) number() error {
	start := c.i
	if c.peek() == '-' {
		c.i++
	}
	if c.peek() == '0' {
		c.i++
	} else if !c.digits() {
		return ErrNotJSON
	}
	exponent := false
	if c.peek() == '.' {
		c.i++
		if !c.digits() {
			return ErrNotJSON
		}
	}
	if ch := c.peek(); ch == 'e' || ch == 'E' {
		exponent = true
		c.i++
		if ch := c.peek(); ch == '+' || ch == '-' {
			c.i++
		}
		if !c.digits() {
			return ErrNotJSON
		}
	}
	if exponent || c.i-start > 300 {
		// Only such a number can overflow a float64, which would fail when the value is decoded.
		if _, err := strconv.ParseFloat(string(c.b[start:c.i]), 64); err != nil {
			return ErrBigNumber
		}
	}
	return nil
}

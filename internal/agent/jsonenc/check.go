package jsonenc

// maxClean is the nesting depth from which a value is left to encoding/json.
const maxClean = 200

// clean reports whether v is one JSON value exactly as encoding/json would copy it: valid, without insignificant white
// space and, unless html is set, without characters that encoding/json escapes. False is inconclusive: encoding/json
// then decides.
func clean(v []byte, html bool) bool {
	c := checker{v: v, inString: &asIs}
	if !html {
		c.inString = &escaped
	}
	return c.value(maxClean) && c.at == len(v)
}

// asIs holds the bytes that appear in a string unchanged. escaped is asIs without the bytes of characters that
// encoding/json escapes. U+2028 and U+2029 begin with 0xE2.
var asIs, escaped = func() (t, e [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
		e[c] = t[c] && c != '<' && c != '>' && c != '&' && c != 0xE2
	}
	return t, e
}()

// A checker walks through a JSON value. Each method consumes one element and reports whether it is clean.
type checker struct {
	v        []byte
	at       int
	inString *[256]bool
}

// take consumes ch if it comes next.
func (c *checker) take(ch byte) bool {
	if c.at < len(c.v) && c.v[c.at] == ch {
		c.at++
		return true
	}
	return false
}

func (c *checker) word(w string) bool {
	if len(c.v)-c.at < len(w) || string(c.v[c.at:c.at+len(w)]) != w {
		return false
	}
	c.at += len(w)
	return true
}

// value checks a value with at most depth levels of nesting.
func (c *checker) value(depth int) bool {
	if c.at == len(c.v) || depth == 0 {
		return false
	}
	switch c.v[c.at] {
	case '"':
		return c.text()
	case '{':
		return c.list('}', depth, true)
	case '[':
		return c.list(']', depth, false)
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

// list checks an array or an object.
func (c *checker) list(end byte, depth int, keys bool) bool {
	c.at++
	if c.take(end) {
		return true
	}
	for {
		if keys && (c.at == len(c.v) || c.v[c.at] != '"' || !c.text() || !c.take(':')) {
			return false
		}
		if !c.value(depth - 1) {
			return false
		}
		if c.take(',') {
			continue
		}
		return c.take(end)
	}
}

// text checks a string, including its quotes.
func (c *checker) text() bool {
	v, i, plain := c.v, c.at+1, c.inString
	for i < len(v) {
		if plain[v[i]] {
			i++
			continue
		}
		switch v[i] {
		case '"':
			c.at = i + 1
			return true
		case '\\':
			n := escapeLength(v[i:])
			if n == 0 {
				return false
			}
			i += n
		case 0xE2: // U+2028 and U+2029 are escaped
			if isSeparator(v[i:]) {
				return false
			}
			i++
		default:
			return false
		}
	}
	return false
}

// escapeLength returns the length of the escape sequence at the beginning of v, or 0 if it is invalid.
func escapeLength(v []byte) int {
	if len(v) < 2 {
		return 0
	}
	switch v[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(v) < 6 {
			return 0
		}
		for _, ch := range v[2:6] {
			if !('0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'f' || 'A' <= ch && ch <= 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// digits consumes at least one digit.
func (c *checker) digits() bool {
	from := c.at
	for c.at < len(c.v) && c.v[c.at]-'0' <= 9 {
		c.at++
	}
	return c.at > from
}

// number checks a number (RFC 8259, section 6).
func (c *checker) number() bool {
	c.take('-')
	if !c.take('0') && !c.digits() {
		return false
	}
	if c.take('.') && !c.digits() {
		return false
	}
	if c.take('e') || c.take('E') {
		if !c.take('+') {
			c.take('-')
		}
		return c.digits()
	}
	return true
}

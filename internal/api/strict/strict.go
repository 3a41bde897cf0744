// Package strict reads JSON from strangers the way the HTTP interface promises: exactly one value, in valid UTF-8, no
// name twice in any object, names as they are written (never another case), bounded nesting, nothing behind the value.
// What encoding/json lets pass, or repairs in silence, is refused here with the place. A lone surrogate escape, which
// JSON allows and UTF-8 cannot hold, becomes U+FFFD.
//
// Numbers stay text, so that none loses digits; one that no 64-bit float can hold is refused, as programs could not read it,
// nor a history that it stands in. The package knows no types: it hands out raw members, which are then
// known to be good, in one pass which allocates next to nothing.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxDepth is how deep a body may nest. Arguments may then nest 1,000 deep within a call.
	MaxDepth = 1024
	// MaxNumber is how many characters a number may have: reading one costs more than its length.
	MaxNumber = 1024
	// surelyFloat is up to how many characters a number without an exponent is in the range of a float64 for certain.
	surelyFloat = 300
	// linear is up to how many names an object is searched rather than sorted for a name that comes twice.
	linear = 16
)

// An Error says what is wrong with a body, and where.
type Error struct {
	Pointer string // JSON pointer to the value or member, as far as it was read
	Offset  int    // in bytes
	Reason  string
}

func (e *Error) Error() string {
	at := e.Pointer
	if at == "" {
		at = "the body"
	}
	return fmt.Sprintf("%s: %s (at byte %d)", at, e.Reason, e.Offset)
}

// Check returns nil when data is one good JSON value, else an *Error. It replaces lone surrogate escapes in data itself.
func Check(data []byte) error {
	var room [16][]byte
	s := scanner{data: data, keys: room[:0]}
	s.space()
	if err := s.value(1); err != nil {
		return err
	}
	return s.end()
}

// Members checks data as Check does and calls member for each member of its object, in order, with the unescaped name and
// the value without surrounding space, both parts of data or scratch: they must be copied to be kept longer than data. A
// value that is no object is an *Error. The first error of member ends it and is returned.
//
// The members are handed out while the rest is still unread: what member does must not matter when Members fails.
func Members(data []byte, member func(name, value []byte) error) error {
	var room [16][]byte
	s := scanner{data: data, keys: room[:0]}
	s.space()
	if s.pos == len(data) {
		return &Error{Reason: "is empty; a JSON object is needed"}
	}
	if data[s.pos] != '{' {
		start := s.pos
		if err := s.value(1); err != nil {
			return err
		}
		return &Error{Offset: start, Reason: "must be an object, not " + Kind(data[start:])}
	}
	if err := s.object(1, member); err != nil {
		return err
	}
	return s.end()
}

// Elements calls element for each element of an array that Members or Check has let pass.
func Elements(array []byte, element func(value []byte)) {
	i := skipSpace(array, 1)
	for i < len(array) && array[i] != ']' {
		end := skip(array, i)
		element(bytes.TrimRight(array[i:end:end], " \t\r\n"))
		i = end
		if i < len(array) && array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
}

// String returns the text of a good JSON string, and whether value is one.
func String(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", false
	}
	return text, true
}

// Kind names the kind of a JSON value for an error message: an object, an array, a string, a number, a boolean or null.
func Kind(value []byte) string {
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Pointer appends a name to a JSON pointer (RFC 6901).
func Pointer(base, name string) string {
	return base + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

type scanner struct {
	data []byte
	pos  int
	keys [][]byte // names of the open objects, those of the innermost last
}

func (s *scanner) fail(reason string) *Error { return &Error{Offset: s.pos, Reason: reason} }

func (s *scanner) end() error {
	s.space()
	if s.pos < len(s.data) {
		return s.fail("has more behind the JSON value")
	}
	return nil
}

func (s *scanner) space() { s.pos = skipSpace(s.data, s.pos) }

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i
}

// value reads one value. The error is nil or an *Error or, within Members, what member returned.
func (s *scanner) value(depth int) error {
	if s.pos == len(s.data) {
		return s.fail("ends too early")
	}
	switch c := s.data[s.pos]; c {
	case '{':
		return s.object(depth, nil)
	case '[':
		return s.array(depth)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return s.number()
		}
		return s.fail("has " + strconv.QuoteRune(rune(c)) + " where a value is needed")
	}
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return s.fail("has an unknown word where a value is needed")
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) array(depth int) error {
	if depth > MaxDepth {
		return s.fail("nests deeper than " + strconv.Itoa(MaxDepth))
	}
	s.pos++
	s.space()
	if s.at(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := s.value(depth + 1); err != nil {
			return within(err, strconv.Itoa(i))
		}
		s.space()
		if s.at(']') {
			return nil
		}
		if !s.at(',') {
			return s.fail("needs a comma or ] after element " + strconv.Itoa(i))
		}
		s.space()
	}
}

func (s *scanner) object(depth int, member func(name, value []byte) error) error {
	if depth > MaxDepth {
		return s.fail("nests deeper than " + strconv.Itoa(MaxDepth))
	}
	s.pos++
	s.space()
	if s.at('}') {
		return nil
	}
	base := len(s.keys)
	for {
		name, err := s.name(base)
		if err != nil {
			return err
		}
		start := s.pos
		if err := s.value(depth + 1); err != nil {
			return within(err, string(name))
		}
		if member != nil {
			if err := member(name, s.data[start:s.pos:s.pos]); err != nil {
				return err
			}
		}
		s.space()
		if s.at('}') {
			return s.close(base)
		}
		if !s.at(',') {
			return s.fail("needs a comma or } after the member " + strconv.Quote(string(name)))
		}
		s.space()
	}
}

// name reads a name and the colon behind it, and notes the name.
func (s *scanner) name(base int) ([]byte, error) {
	if s.pos == len(s.data) || s.data[s.pos] != '"' {
		return nil, s.fail("needs a name in double quotes")
	}
	start := s.pos
	escaped, err := s.text()
	if err != nil {
		return nil, err
	}
	name := s.data[start+1 : s.pos-1]
	if escaped {
		plain, _ := String(s.data[start:s.pos])
		name = []byte(plain)
	}
	if open := s.keys[base:]; len(open) < linear {
		for _, other := range open {
			if bytes.Equal(other, name) {
				return nil, &Error{Pointer: Pointer("", string(name)), Offset: start, Reason: "is there twice"}
			}
		}
	}
	s.keys = append(s.keys, name)
	s.space()
	if !s.at(':') {
		return nil, s.fail("needs a colon after the name " + strconv.Quote(string(name)))
	}
	s.space()
	return name, nil
}

// close forgets the names of the object and, where there were too many to search, looks for one that came twice.
func (s *scanner) close(base int) error {
	names := s.keys[base:]
	s.keys = s.keys[:base]
	if len(names) <= linear {
		return nil
	}
	slices.SortFunc(names, bytes.Compare)
	for i := 1; i < len(names); i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return &Error{Pointer: Pointer("", string(names[i])), Offset: s.pos, Reason: "is there twice"}
		}
	}
	return nil
}

func (s *scanner) at(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// text reads a string and reports whether it has escapes.
func (s *scanner) text() (escaped bool, err error) {
	s.pos++
	for s.pos < len(s.data) {
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
		case c < utf8.RuneSelf:
			s.pos++
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
		if unit < 0xdc00 && bytes.HasPrefix(s.data[s.pos+6:], []byte(`\u`)) {
			if low, ok := hex4(s.data[s.pos+8:]); ok && low >= 0xdc00 && low < 0xe000 {
				s.pos += 12
				return nil
			}
		}
		copy(s.data[s.pos+2:], "fffd") // a lone surrogate
	}
	s.pos += 6
	return nil
}

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

// within adds a step to the pointer of an error that comes up from deeper.
func within(err error, name string) error {
	if e, ok := err.(*Error); ok {
		e.Pointer = Pointer("", name) + e.Pointer
	}
	return err
}

// skip returns the index behind the good value at i: that of the comma or bracket which ends it.
func skip(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			for i++; data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// Package strict reads untrusted JSON the way the HTTP interface promises: exactly one value, in valid UTF-8, no
// duplicate names in an object, case-sensitive names, bounded nesting, nothing after the value. What encoding/json
// accepts or silently repairs is refused here, with its position. A lone surrogate escape, which JSON allows and UTF-8
// cannot hold, becomes U+FFFD.
//
// Numbers stay text, so that none loses digits. A number that no 64-bit float can hold is refused, since programs could
// not read it, nor a history that contains it. The package knows no types: it returns raw, validated members, in one
// pass which allocates next to nothing; names of objects that have more than 16 are sorted, so that it takes n log n.
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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
	s := open(data)
	defer s.done()
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
	s := open(data)
	defer s.done()
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

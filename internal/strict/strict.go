// Package strict reads untrusted JSON: exactly one value in valid UTF-8, without duplicate names in an object, with
// bounded nesting and with nothing after the value. Names are case-sensitive. Input that encoding/json accepts or
// silently repairs is refused here, with its position. A lone surrogate escape, which JSON allows and UTF-8 cannot
// encode, becomes U+FFFD.
//
// Numbers stay text, so they lose no digits. A number outside the range of float64 is refused, because neither programs
// nor readers of a history could decode it. The package knows no types. It returns raw, validated members in one pass
// that allocates almost nothing. Objects with more than 16 names have them sorted, so the worst case is O(n log n).
package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// MaxDepth is how deep a body may nest. It leaves 1,000 levels for the arguments within a call.
	MaxDepth = 1024
	// MaxNumber is the longest number in characters. It is bounded because parsing one costs more than linear time.
	MaxNumber = 1024
	// surelyFloat is the longest number without an exponent that certainly is in the range of float64.
	surelyFloat = 300
	// linear is the largest number of names for which duplicates are found by linear search. More names are sorted.
	linear = 16
)

// An Error is a fault of a body and its position.
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

// Check returns nil if data is one valid JSON value, else an *Error. It replaces lone surrogate escapes in place.
func Check(data []byte) error {
	s := open(data)
	defer s.done()
	s.space()
	if err := s.value(1); err != nil {
		return err
	}
	return s.end()
}

// Members checks data as Check does, and calls member for each member of its object, in order. name is unescaped, and
// value has no surrounding space. Both alias data or scratch memory, so the callback must copy what it keeps longer
// than data. A value that is not an object is an *Error. Members returns the first error of member, and stops there.
//
// member is called before the rest is validated: its effects must not matter if Members fails.
func Members(data []byte, member func(name, value []byte) error) error {
	s := open(data)
	defer s.done()
	s.space()
	if s.pos == len(data) {
		return &Error{Reason: "is empty; a JSON object is needed"}
	}
	if data[s.pos] != '{' {
		start := s.pos
		// a syntax error wins over the wrong type
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

// Elements calls element for each element of an array that Members or Check has validated.
func Elements(array []byte, element func(value []byte)) {
	i := skipSpace(array, 1)
	for i < len(array) && array[i] != ']' {
		end := skip(array, i)
		// skip stops at the comma or bracket, after any white space
		element(bytes.TrimRight(array[i:end:end], " \t\r\n"))
		i = end
		if i < len(array) && array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
}

// String returns the text of a validated JSON string, and whether value is one.
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

// Kind names the type of a validated JSON value, with an article, for error messages.
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

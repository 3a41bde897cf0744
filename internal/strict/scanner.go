package strict

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
)

// A scanner validates JSON in one pass. pos is also the offset that errors report.
type scanner struct {
	data []byte
	pos  int
	keys [][]byte // names of the open objects, innermost last
}

// scanners are idle scanners. They keep no reference to any input.
var scanners = sync.Pool{New: func() any { return &scanner{keys: make([][]byte, 0, linear)} }}

// open returns a scanner at the start of data. The caller must call done.
func open(data []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.data = data
	return s
}

// done returns the scanner to the pool. One with room for many names is dropped, to free the memory.
func (s *scanner) done() {
	// one large object must not keep its memory in the pool
	if cap(s.keys) > 4*linear {
		return
	}
	clear(s.keys[:cap(s.keys)])
	*s = scanner{keys: s.keys[:0]}
	scanners.Put(s)
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

// value reads one value. The error is nil, an *Error or, within Members, the error that member returned.
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

// object reads an object. member may be nil.
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
			// the capacity is limited, so appending to the value cannot overwrite the input
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

// name reads a name and the colon after it, and records the name. It reports a duplicate at once while the object has
// few names; close finds the others.
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
	// beyond that many names, close looks for duplicates
	if open := s.keys[base:]; len(open) < linear {
		for _, other := range open {
			if bytes.Equal(other, name) {
				return nil, &Error{Pointer: Pointer("", string(name)), Offset: start, Reason: "appears twice"}
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

// close forgets the names of the object. If there were too many for a linear search, it sorts them and reports a
// duplicate.
func (s *scanner) close(base int) error {
	names := s.keys[base:]
	s.keys = s.keys[:base]
	if len(names) <= linear {
		return nil
	}
	slices.SortFunc(names, bytes.Compare)
	for i := 1; i < len(names); i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return &Error{Pointer: Pointer("", string(names[i])), Offset: s.pos, Reason: "appears twice"}
		}
	}
	return nil
}

// at consumes c if it is the next byte.
func (s *scanner) at(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// maxPointer bounds the pointer of an error, in bytes. Steps that exceed it are dropped, which are those nearest the
// root.
const maxPointer = 4 << 10

// within prepends a step to the pointer of an error from a nested value.
func within(err error, name string) error {
	if e, ok := err.(*Error); ok && len(e.Pointer)+len(name) <= maxPointer {
		e.Pointer = Pointer("", name) + e.Pointer
	}
	return err
}

// skip returns the end of the valid value at i: the index of the comma or bracket that follows it.
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

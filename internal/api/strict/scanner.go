package strict

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
)

type scanner struct {
	data []byte
	pos  int
	keys [][]byte // names of the open objects, those of the innermost last
}

// scanners are scanners that nobody uses. They hold nothing.
var scanners = sync.Pool{New: func() any { return &scanner{keys: make([][]byte, 0, linear)} }}

// open returns a scanner at the start of data; done must be called afterwards.
func open(data []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.data = data
	return s
}

// done forgets data, for another use of the scanner. It drops one with room for many names.
func (s *scanner) done() {
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

// maxPointer bounds the pointer of an error, in bytes: what was added last, nearest to the top, is left out beyond it.
const maxPointer = 4 << 10

// within adds a step to the pointer of an error that comes up from deeper.
func within(err error, name string) error {
	if e, ok := err.(*Error); ok && len(e.Pointer)+len(name) <= maxPointer {
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

package fetch

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxShapeKeys bounds how many keys of one text are examined, because a body of many keys takes many times its size in
// memory.
const maxShapeKeys = 1 << 18

// jsonShape describes valid JSON to a depth, without decoding it: objects by their keys, arrays by their first element,
// n for a number, s for a string, b for a boolean, 0 for null.
func jsonShape(text string, depth int) string {
	s := jsonScan{rest: text}
	return s.shape(depth)
}

// A jsonScan scans text that json.Valid has accepted.
type jsonScan struct {
	rest string
	keys int // keys examined so far
}

// next skips insignificant space and returns the next byte, or 0 at the end.
func (s *jsonScan) next() byte {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	if s.rest == "" {
		return 0
	}
	return s.rest[0]
}

func (s *jsonScan) shape(depth int) string {
	switch c := s.next(); c {
	case '{':
		if depth == 0 {
			s.skip()
			return "{}"
		}
		return s.object(depth)
	case '[':
		return s.array(depth)
	default:
		s.skip()
		switch c {
		case '"':
			return "s"
		case 't', 'f':
			return "b"
		case 'n':
			return "0"
		}
		return "n"
	}
}

func (s *jsonScan) object(depth int) string {
	members := map[string]string{}
	for s.rest = s.rest[1:]; s.next() == '"'; s.comma() {
		key := s.skip()
		s.next()
		s.rest = s.rest[1:] // the colon
		if s.keys++; s.keys > maxShapeKeys {
			s.skip()
			continue
		}
		members[unquoted(key)] = s.shape(depth - 1)
	}
	s.rest = s.rest[1:]
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteByte('{')
	for _, name := range names {
		b.WriteString(name + ":" + members[name] + ",")
	}
	b.WriteByte('}')
	return b.String()
}

// array scans the whole array to skip it, and its first element again to describe it.
func (s *jsonScan) array(depth int) string {
	whole := jsonScan{rest: s.rest}
	s.skip()
	whole.rest, whole.keys = whole.rest[1:], s.keys
	if depth == 0 || whole.next() == ']' {
		return "[]"
	}
	first := whole.shape(depth - 1)
	s.keys = whole.keys
	return "[" + first + "]"
}

func (s *jsonScan) comma() {
	if s.next() == ',' {
		s.rest = s.rest[1:]
	}
}

// skip skips one value and returns its text.
func (s *jsonScan) skip() string {
	s.next()
	end, depth := 0, 0
	for end < len(s.rest) {
		switch s.rest[end] {
		case '"':
			for end++; s.rest[end] != '"'; end++ {
				if s.rest[end] == '\\' {
					end++
				}
			}
			end++
		case '{', '[':
			depth++
			end++
		case '}', ']':
			depth--
			end++
		case ',', ':', ' ', '\t', '\r', '\n':
			end++
			continue // separators between the members of a container
		default:
			for end < len(s.rest) && !strings.ContainsRune(",:]} \t\r\n", rune(s.rest[end])) {
				end++
			}
		}
		if depth == 0 {
			break
		}
	}
	value := s.rest[:end]
	s.rest = s.rest[end:]
	return value
}

func unquoted(key string) string {
	if !strings.Contains(key, `\`) && utf8.ValidString(key) {
		return key[1 : len(key)-1]
	}
	var out string
	_ = json.Unmarshal([]byte(key), &out) // the key is valid
	return out
}

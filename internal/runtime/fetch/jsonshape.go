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

// maxJSONForm bounds the stored structure of one JSON text, in bytes.
const maxJSONForm = 2 << 10

// A jsonNode is the structure of a JSON value, parsed from a text of jsonShape.
type jsonNode struct {
	kind byte                 // n, s, b or 0 as in jsonShape, { or [
	keys map[string]*jsonNode // members of an object
	elem *jsonNode            // the first element of a list; nil if it is empty
	cut  bool                 // the text ended within it
}

// readJSONForm parses a text of jsonShape, which may have been cut. It returns nil if the text is ambiguous, because
// keys are not escaped in it.
func readJSONForm(text string) *jsonNode {
	if text == "" {
		return nil
	}
	n, rest, ok := readJSONNode(text)
	if !ok || rest != "" {
		return nil
	}
	return n
}

// readJSONNode parses one node and returns the rest of the text. A node at which the text ends is marked as cut.
func readJSONNode(text string) (n *jsonNode, rest string, ok bool) {
	n, rest = &jsonNode{kind: text[0]}, text[1:]
	switch n.kind {
	case 'n', 's', 'b', '0':
		return n, rest, true
	case '[':
		return readJSONList(n, rest)
	case '{':
		n.keys = map[string]*jsonNode{}
		for {
			if strings.HasPrefix(rest, "}") {
				return n, rest[1:], true
			}
			key, value, found := strings.Cut(rest, ":")
			if !found || value == "" {
				n.cut = true
				return n, "", true
			}
			if n.keys[key], rest, ok = readJSONNode(value); !ok || rest != "" && rest[0] != ',' {
				return nil, "", false
			}
			rest = strings.TrimPrefix(rest, ",")
		}
	}
	return nil, "", false
}

func readJSONList(n *jsonNode, rest string) (*jsonNode, string, bool) {
	if rest == "" {
		n.cut = true
		return n, "", true
	}
	if rest[0] == ']' {
		return n, rest[1:], true
	}
	var ok bool
	if n.elem, rest, ok = readJSONNode(rest); !ok || rest != "" && rest[0] != ']' {
		return nil, "", false
	}
	return n, strings.TrimPrefix(rest, "]"), true
}

// keepsJSON reports whether now, a text of jsonShape, describes the same structure as the earlier text was. An empty
// list or null matches any list.
func keepsJSON(was, now string) bool {
	if was == now {
		return true
	}
	w, n := readJSONForm(was), readJSONForm(now)
	return w != nil && n != nil && w.keptBy(n, false)
}

// keptBy reports whether now has the node's structure. replaced means that the containing object has new keys, so a
// missing value may have moved to another name.
func (w *jsonNode) keptBy(now *jsonNode, replaced bool) bool {
	switch {
	case w.kind == '0' || now.kind == '0':
		return w.kind == '[' || now.kind == '[' || !replaced
	case w.kind != now.kind:
		return false
	case w.kind == '[':
		return w.elem == nil || now.elem == nil || w.elem.keptBy(now.elem, false)
	}
	return w.keysKeptBy(now)
}

func (w *jsonNode) keysKeptBy(now *jsonNode) bool {
	replaced := false
	for key := range now.keys {
		replaced = replaced || !w.cut && w.keys[key] == nil
	}
	for key, was := range w.keys {
		is := now.keys[key]
		switch {
		case is != nil && !was.keptBy(is, replaced):
			return false
		case is == nil && !now.cut && (replaced || was.kind != '[' && was.kind != '0'):
			return false
		}
	}
	return true
}

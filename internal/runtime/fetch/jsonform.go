package fetch

import "strings"

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

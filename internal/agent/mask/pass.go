package mask

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// A pass masks one piece of data. It is used once, by one goroutine.
type pass struct {
	rules   *Rules
	keep    bool // collect the masked texts in secrets
	secrets []string
	rename  func(string) string // renames members of the outermost object; may be nil

	// harmless caches quoted member names that match no pattern: objects in a list mostly have the same names.
	harmless [8][]byte

	b       []byte // the current text
	all     spans  // the parts of it to mask
	word    unquoted
	open    int // number of unclosed quotation marks in it
	scratch []byte
	depth   int // nesting depth of the URL whose parameter the text is

	document bool    // the text is a file, which may be a table or markup
	within   []table // the tables whose end the text is
	tables   []table // those found

	until  context.Context // ends the pass; may be nil
	looked int             // bytes since until was last checked
	over   bool            // until has ended
	steps  int             // bytes looked at, counting repeats; for tests
}

// ends reports whether the pass must stop, after looking at more further bytes. It checks until every 64 KiB.
func (p *pass) ends(more int) bool {
	const between = 64 << 10
	p.steps += more
	if p.looked += more; p.until != nil && p.looked >= between {
		p.looked, p.over = 0, p.over || p.until.Err() != nil
	}
	return p.over
}

// json masks string contents, and whole members whose names mark secrets.
func (p *pass) json(raw json.RawMessage) (masked json.RawMessage, changed bool) {
	if p.rules == nil {
		return raw, false
	}
	last, depth := 0, 0
	put := func(from, to int, with []byte) {
		masked, changed = append(append(masked, raw[last:from]...), with...), true
		last = to
	}
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if raw[i] != '"' {
			i++
			continue
		}
		end := rawjson.StringEnd(raw, i)
		p.steps += end - i
		if text, hit := p.quoted(raw[i:end]); hit {
			put(i, end, text)
		}
		// Only the name of a member is followed by a colon.
		colon := rawjson.SkipSpace(raw, end)
		if colon >= len(raw) || raw[colon] != ':' {
			i = end
			continue
		}
		value := rawjson.SkipSpace(raw, colon+1)
		if p.member(raw[i:end], raw[value:], depth == 1) {
			i = rawjson.ValueEnd(raw, value)
			p.steps += i - value
			p.leaves(raw[value:i])
			put(value, i, quotedMask)
			continue
		}
		i = value
	}
	if !changed {
		return raw, false
	}
	return append(masked, raw[last:]...), true
}

// quotedMask is Masked as a JSON string.
var quotedMask = []byte(`"` + Masked + `"`)

// member reports whether a member is masked because of its name. rest begins with its value.
func (p *pass) member(quoted, rest []byte, outermost bool) bool {
	last, alone := len(quoted)-2, !outermost || p.rename == nil
	if last < 0 {
		return false // not a JSON string
	}
	// Most names end in a character with which no pattern ends. Reject these without decoding, unless the last
	// character may belong to an escape.
	if alone && last > 0 && p.rules.names[lower(quoted[last])] == nil && alphanumeric(quoted[last]) &&
		quoted[max(0, last-5)] != '\\' {
		return false
	}
	// A small cache, indexed by a cheap hash of the name.
	seen := &p.harmless[(3*len(quoted)+int(quoted[1])+int(quoted[last]))%len(p.harmless)]
	if alone && bytes.Equal(*seen, quoted) {
		return false
	}
	name := bytes.Trim(quoted, `"`)
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) != nil {
			return false
		}
		name = []byte(s)
	}
	how := p.rules.match(name)
	if outermost && p.rename != nil {
		how = max(how, p.rules.match([]byte(p.rename(string(name)))))
	}
	if how == never {
		*seen = quoted
	}
	return p.masks(how, rest)
}

// masks reports whether the JSON value at the beginning of rest is masked under a name with that match.
func (p *pass) masks(how match, rest []byte) bool {
	switch {
	case how == never || len(rest) == 0 || bytes.IndexByte([]byte("ntf"), rest[0]) >= 0:
		return false
	case how == always:
		return !bytes.HasPrefix(rest, quotedMask)
	}
	return rest[0] == '"' && opaque(bytes.Trim(rest[:rawjson.StringEnd(rest, 0)], `"`))
}

// named masks a value that has a name, such as a positional argument.
func (p *pass) named(name string, raw json.RawMessage) (masked json.RawMessage, changed bool) {
	if name != "" && p.rules != nil {
		if at := rawjson.SkipSpace(raw, 0); p.masks(p.rules.match([]byte(name)), raw[at:]) {
			p.leaves(raw)
			return quotedMask, true
		}
	}
	return p.json(raw)
}

// quoted masks the contents of a JSON string, given with its quotes.
func (p *pass) quoted(raw []byte) (masked []byte, changed bool) {
	if len(raw) < shortest+2 || raw[len(raw)-1] != '"' {
		return nil, false
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		if text, changed = p.text(text); !changed {
			return nil, false
		}
		return append(append([]byte{'"'}, text...), '"'), true // replacements need no escapes
	}
	if !suspicious(text) && !bytes.Contains(text, []byte(`\u`)) {
		return nil, false
	}
	p.scratch = unescape(p.scratch[:0], text)
	if text, changed = p.text(p.scratch); !changed {
		return nil, false
	}
	return quote(text), true
}

// quote returns text as a JSON string.
func quote(text []byte) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(string(text)) != nil {
		return quotedMask // unreachable: every string can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// leaves collects the strings and numbers of a masked value.
func (p *pass) leaves(raw []byte) {
	if !p.keep {
		return
	}
	for i := 0; i < len(raw); {
		end := i + 1
		switch c := raw[i]; {
		case c == '"':
			end = rawjson.StringEnd(raw, i)
			p.scratch = unescape(p.scratch[:0], bytes.Trim(raw[i:end], `"`))
			p.collect(p.scratch)
		case '0' <= c && c <= '9':
			end = rawjson.ValueEnd(raw, i)
			p.collect(raw[i:end])
		}
		i = end
	}
}

// collect keeps a secret. It also keeps the long parts of a secret with several lines, or with a scheme or user in
// front.
func (p *pass) collect(secret []byte) {
	if !p.keep || len(secret) < minKnown {
		return
	}
	p.secrets = append(p.secrets, string(secret))
	for _, part := range bytes.FieldsFunc(secret, func(r rune) bool {
		return r <= ' ' || r == ':' || r == ';' ||
			r == '='
	}) {
		if len(part) >= 2*minKnown && len(part) < len(secret) {
			p.secrets = append(p.secrets, string(part))
		}
	}
}

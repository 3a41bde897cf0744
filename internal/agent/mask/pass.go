package mask

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent/rawjson"
)

// A pass masks one piece of data.
type pass struct {
	rules   *Rules
	keep    bool // collect what is masked
	secrets []string
	rename  func(string) string // of the members of the outermost object; nil for none

	harmless [8][]byte // names of members, in quotes, that say nothing: most are those of the object before

	b       []byte // the text at hand
	all     spans  // what is to be masked in it
	word    unquoted
	open    int // quotation marks in it that nothing closes
	scratch []byte
	depth   int // of the address that the text is a parameter of

	until  context.Context // with which the pass ends; nil for none
	looked int             // bytes since until was asked
	over   bool            // it has ended
	steps  int             // bytes that were looked at, each as often as it was
}

// ends reports whether the pass is to end, which has looked at so many bytes more.
func (p *pass) ends(more int) bool {
	const between = 64 << 10
	p.steps += more
	if p.looked += more; p.until != nil && p.looked >= between {
		p.looked, p.over = 0, p.over || p.until.Err() != nil
	}
	return p.over
}

// json masks the members that have the name of a secret, and texts.
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

var quotedMask = []byte(`"` + Masked + `"`)

// member reports whether the member of that quoted name, whose value begins rest, is masked for its name.
func (p *pass) member(quoted, rest []byte, outermost bool) bool {
	last, alone := len(quoted)-2, !outermost || p.rename == nil
	if last < 0 {
		return false // no JSON
	}
	if alone && last > 0 && p.rules.names[lower(quoted[last])] == nil && alphanumeric(quoted[last]) &&
		quoted[max(0, last-5)] != '\\' {
		return false
	}
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

// masks reports whether the JSON value that begins rest is masked under a name that matches so.
func (p *pass) masks(how match, rest []byte) bool {
	switch {
	case how == never || len(rest) == 0 || bytes.IndexByte([]byte("ntf"), rest[0]) >= 0:
		return false
	case how == always:
		return !bytes.HasPrefix(rest, quotedMask)
	}
	return rest[0] == '"' && opaque(bytes.Trim(rest[:rawjson.StringEnd(rest, 0)], `"`))
}

// named masks a value that has a name.
func (p *pass) named(name string, raw json.RawMessage) (masked json.RawMessage, changed bool) {
	if name != "" && p.rules != nil {
		if at := rawjson.SkipSpace(raw, 0); p.masks(p.rules.match([]byte(name)), raw[at:]) {
			p.leaves(raw)
			return quotedMask, true
		}
	}
	return p.json(raw)
}

// quoted masks a string of JSON, with its quotes.
func (p *pass) quoted(raw []byte) (masked []byte, changed bool) {
	if len(raw) < shortest+2 || raw[len(raw)-1] != '"' {
		return nil, false
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') < 0 {
		if text, changed = p.text(text); !changed {
			return nil, false
		}
		return append(append([]byte{'"'}, text...), '"'), true // what is put in needs no escape
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

// quote is text as JSON.
func quote(text []byte) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(string(text)) != nil {
		return quotedMask // a string can be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// leaves collects the texts and numbers of a value that is masked.
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

// collect keeps a secret, and the parts of one that has a scheme or a user before it, or several lines.
func (p *pass) collect(secret []byte) {
	if !p.keep || len(secret) < MinKnown {
		return
	}
	p.secrets = append(p.secrets, string(secret))
	for _, part := range bytes.FieldsFunc(secret, func(r rune) bool {
		return r <= ' ' || r == ':' || r == ';' ||
			r == '='
	}) {
		if len(part) >= 2*MinKnown && len(part) < len(secret) {
			p.secrets = append(p.secrets, string(part))
		}
	}
}

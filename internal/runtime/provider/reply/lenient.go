package reply

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// Bounds of one value: its depth, and the number of values in it.
const (
	maxDepth  = 64
	maxValues = 500_000
)

// A lenient parser reads JSON as models and servers write it: with raw line breaks in strings, other quotes, bare keys,
// literals of Python and JavaScript, comments, and extra or missing commas. It reads valid JSON as JSON.
type lenient struct {
	s      string
	i      int
	python bool // double-quoted strings have Python's escapes as well
	depth  int
	left   int  // values that may still be read
	open   bool // the text ended within a container
	loose  bool // something was not valid JSON
}

// parse reads a value at the beginning of s and returns its end. closed reports whether all its containers are closed.
func parse(s string) (v any, end int, closed, ok bool) {
	p := &lenient{s: s, left: maxValues}
	v, ok = p.value()
	return v, p.i, !p.open, ok
}

func (p *lenient) rest() string { return p.s[p.i:] }

func (p *lenient) peek() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// space skips white space and comments.
func (p *lenient) space() {
	for p.i < len(p.s) {
		switch c := p.s[p.i]; {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			p.i++
		case c == '#' || c == '/' && strings.HasPrefix(p.rest(), "//"):
			p.loose = true
			p.skipPast("\n")
		case c == '/' && strings.HasPrefix(p.rest(), "/*"):
			p.loose = true
			p.skipPast("*/")
		default:
			return
		}
	}
}

func (p *lenient) skipPast(mark string) {
	if n := strings.Index(p.rest(), mark); n >= 0 {
		p.i += n + len(mark)
		return
	}
	p.i = len(p.s)
}

// value reads any value. It returns false if there is none, or if a bound is exceeded.
func (p *lenient) value() (any, bool) {
	p.space()
	p.left--
	p.depth++
	defer func() { p.depth-- }()
	if p.left < 0 || p.depth > maxDepth || p.i >= len(p.s) {
		return nil, false
	}
	switch c := p.s[p.i]; {
	case c == '{':
		p.i++
		return p.members('}')
	case c == '[':
		p.i++
		return p.elements(']')
	case c == '(':
		p.i++
		p.loose = true
		return p.elements(')')
	case p.stringAhead() > 0:
		return p.strings()
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	return p.word()
}

// members reads an object up to its end: "key": value or key = value.
func (p *lenient) members(end byte) (any, bool) {
	o := newObject()
	for {
		p.space()
		switch {
		case p.i >= len(p.s):
			p.open = true
			return o, len(o.keys) > 0
		case p.peek() == end:
			p.i++
			return o, true
		case p.peek() == ',':
			p.i++
			continue
		}
		key, ok := p.key()
		if !ok || !p.colon() {
			return nil, false
		}
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		o.put(key, v)
		if p.open {
			return o, true
		}
	}
}

var bareKey = lazy.Regexp(`^[\pL_$][\pL\pN_$.-]*`)

func (p *lenient) key() (string, bool) {
	if p.stringAhead() > 0 {
		t, ok := p.string()
		return t.value, ok
	}
	name := bareKey().FindString(p.s[p.i:min(len(p.s), p.i+200)])
	p.i += len(name)
	p.loose = true
	return name, name != ""
}

func (p *lenient) colon() bool {
	p.space()
	for _, mark := range []string{":", "=>", "="} {
		if strings.HasPrefix(p.rest(), mark) {
			p.i += len(mark)
			p.loose = p.loose || mark != ":"
			return true
		}
	}
	return false
}

func (p *lenient) elements(end byte) (any, bool) {
	list := []any{}
	for {
		p.space()
		switch {
		case p.i >= len(p.s):
			p.open = true
			return list, len(list) > 0
		case p.peek() == end:
			p.i++
			return list, true
		case p.peek() == ',':
			p.i++
			continue
		}
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		list = append(list, v)
		if p.open {
			return list, true
		}
	}
}

var numeral = lazy.Regexp(`^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?`)

// number reads a number and normalizes it to JSON if it is not.
func (p *lenient) number() (any, bool) {
	n := numeral().FindString(p.s[p.i:min(len(p.s), p.i+400)])
	if n == "" {
		return p.word() // -Infinity
	}
	p.i += len(n)
	if !json.Valid([]byte(n)) {
		p.loose = true
		n = strings.TrimPrefix(n, "+")
		f, err := strconv.ParseFloat(n, 64)
		if err != nil {
			return nil, false
		}
		n = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return json.Number(n), true
}

// words are the literals of JSON, Python and JavaScript. Numbers that JSON lacks become nil.
var words = map[string]any{"true": true, "True": true, "TRUE": true, "false": false, "False": false, "FALSE": false,
	"null": nil, "None": nil,
	"nil": nil, "undefined": nil, "NULL": nil, "NaN": nil, "Infinity": nil, "-Infinity": nil, "-inf": nil, "inf": nil,
	"nan": nil}

var wordAhead = lazy.Regexp(`^-?[A-Za-z]+`)

// word reads a literal such as true, None or NaN.
func (p *lenient) word() (any, bool) {
	w := wordAhead().FindString(p.s[p.i:min(len(p.s), p.i+20)])
	v, ok := words[w]
	p.i += len(w)
	p.loose = p.loose || w != "true" && w != "false" && w != "null"
	return v, ok
}

// gemmaQuote is Gemma's quotation mark for strings in its calls.
const gemmaQuote = `<|"|>`

var stringStart = lazy.Regexp("^(?:[rRbBuUfF]{0,2}(?:\"\"\"|'''|\"|')|`)")

// stringAhead returns the length of the prefix and the opening quotes of a string that begins here, or 0 if none does.
func (p *lenient) stringAhead() int {
	if strings.HasPrefix(p.rest(), gemmaQuote) {
		return len(gemmaQuote)
	}
	return len(stringStart().FindString(p.s[p.i:min(len(p.s), p.i+5)]))
}

// strings reads a string and joins those that follow as parts of it: "a" "b", "a" + "b".
func (p *lenient) strings() (any, bool) {
	t, ok := p.string()
	values, raws := []string{t.value}, []string{t.raw}
	whole := func() text {
		t.value, t.raw = strings.Join(values, ""), strings.Join(raws, "")
		return t
	}
	for ok {
		at := p.i
		p.space()
		if p.peek() == '+' {
			p.i++
			p.space()
		}
		if p.i == at || p.stringAhead() == 0 {
			p.i = at
			return whole(), true
		}
		next, good := p.string()
		p.space()
		if !good || p.peek() == ':' { // a comma is missing, and this is the next key
			p.i = at
			return whole(), true
		}
		values, raws, p.loose = append(values, next.value), append(raws, next.raw), true
	}
	return t, ok
}

// string reads one string.
func (p *lenient) string() (text, bool) {
	n := p.stringAhead()
	open := p.s[p.i : p.i+n]
	quote := strings.TrimLeft(open, "rRbBuUfF")
	p.i += n
	t := text{style: styleJSON}
	switch {
	case quote == gemmaQuote, strings.ContainsAny(open[:n-len(quote)], "rR"):
		t.style = styleRaw
	case quote != `"` || p.python:
		t.style = stylePython
	}
	p.loose = p.loose || open != `"`
	begin := p.i
	for p.i < len(p.s) {
		switch {
		case strings.HasPrefix(p.s[p.i:], quote):
			t.raw = p.s[begin:p.i]
			p.i += len(quote)
			t.value = t.decode()
			return t, true
		case p.s[p.i] == '\\' && quote != gemmaQuote:
			p.i++
		case p.s[p.i] < ' ':
			p.loose = true
		}
		p.i++
	}
	p.i = len(p.s)
	return t, false
}

package mask

import (
	"bytes"
	"slices"
	"strings"
)

// An elements reads the elements of a text in XML or HTML of any quality, in one pass.
type elements struct {
	p      *pass
	at     int
	open   string // the outermost secret element; "" if none is open
	how    match
	from   int // where its contents begin
	depth  int // open elements of its name
	text   bool
	naming string          // the open element whose text may name the next one
	next   match           // the verdict on the next element, which the one before it names
	begun  map[string]bool // names of secret elements that had a start tag
}

// An attribute is an attribute of a tag.
type attribute struct {
	name  string
	value span
}

// void are the elements of HTML that have no contents.
var void = []string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"}

// findElements masks the contents and attributes of elements whose names mark secrets, attributes with such names, and
// elements that a name, key or id names so, in an attribute or in the element before.
func (p *pass) findElements() {
	e := elements{p: p, begun: map[string]bool{}}
	for !p.ends(0) {
		n := bytes.IndexByte(p.b[e.at:], '<')
		if n < 0 {
			break
		}
		p.steps += n
		e.at += n + 1
		if e.open != "" && e.text {
			e.close(e.at - 1)
		}
		if closes := bytes.HasPrefix(p.b[e.at:], []byte("/")); closes {
			e.at++
			e.endTag()
		} else {
			e.startTag()
		}
	}
	if e.open != "" {
		e.close(len(p.b))
	}
}

// name reads the name of a tag or an attribute and returns its local part.
func (e *elements) name() string {
	from := e.at
	for e.at < len(e.p.b) && (nameChar(e.p.b[e.at]) && e.p.b[e.at] != ' ' || e.p.b[e.at] == ':' ||
		e.p.b[e.at] >= 0x80) {
		e.at++
	}
	name := e.p.b[from:e.at]
	return string(name[bytes.LastIndexByte(name, ':')+1:])
}

// close masks what the secret element holds up to the index.
func (e *elements) close(to int) {
	e.p.secret(e.how, trimmed(e.p.b, e.from, to))
	e.open = ""
}

func trimmed(b []byte, from, to int) span {
	for from < to && b[from] <= ' ' {
		from++
	}
	for from < to && b[to-1] <= ' ' {
		to--
	}
	return span{from, to, Masked}
}

func (e *elements) endTag() {
	at := e.at - len("</")
	name := e.name()
	switch {
	case e.open != "" && name == e.open:
		if e.depth--; e.depth == 0 {
			e.close(at)
		}
	case e.open == "" && name != "" && e.p.rules.match([]byte(name)) == always && !e.begun[name]:
		e.begun[name] = true
		e.p.secret(always, trimmed(e.p.b, 0, at)) // it begins before the text
	}
	if e.naming != "" && name == e.naming {
		e.next = e.p.nameOf(inner(e.p.b, e.from, at))
	}
	e.naming = ""
}

func (e *elements) startTag() {
	name := e.name()
	if name == "" {
		return
	}
	attributes, ended := e.attributes()
	e.naming = ""
	if e.open != "" {
		if name == e.open && !ended {
			e.depth++
		}
		return
	}
	how, by := e.verdict(name, attributes)
	for _, a := range attributes {
		verdict := e.p.rules.match([]byte(a.name))
		if how != never && !slices.Contains([]string{by, "type", "class", "xmlns"}, a.name) {
			verdict = max(verdict, how)
		}
		e.p.secret(verdict, a.value)
	}
	switch {
	case ended || slices.Contains(void, strings.ToLower(name)):
		return
	case how != never:
		e.open, e.how, e.depth, e.text = name, how, 1, how == looking || by == "id"
		e.begun[name] = true
	}
	e.from = e.at
	if slices.Contains([]string{"key", "name", "dt", "th"}, strings.ToLower(name)) {
		e.naming = name
	}
}

// verdict returns the verdict on an element and the attribute that names it, if one does.
func (e *elements) verdict(name string, attributes []attribute) (how match, by string) {
	how, e.next = max(e.next, e.p.rules.match([]byte(name))), never
	for _, a := range attributes {
		if how == never && slices.Contains([]string{"name", "key", "id"}, strings.ToLower(a.name)) {
			how, by = e.p.nameOf(a.value), a.name
		}
	}
	return how, by
}

// attributes reads up to the end of the tag and reports whether that ends the element, too. A value that does not end
// goes to the end of the text.
func (e *elements) attributes() (all []attribute, ended bool) {
	b := e.p.b
	for e.at < len(b) {
		switch c := b[e.at]; {
		case c == '>':
			e.at++
			return all, ended
		case c == '<': // a tag that does not end
			return all, ended
		case c == '=' && len(all) > 0:
			all[len(all)-1].value = e.value()
			ended = false
			continue
		}
		ended = b[e.at] == '/' || ended && b[e.at] <= ' '
		if name := e.name(); name != "" {
			all = append(all, attribute{name: name})
			continue
		}
		e.at++
	}
	return all, true
}

// value reads the value after the = of an attribute.
func (e *elements) value() span {
	b := e.p.b
	e.at++
	for e.at < len(b) && b[e.at] <= ' ' {
		e.at++
	}
	if e.at == len(b) {
		return span{}
	}
	from, ends := e.at, " \t\r\n>"
	if c := b[e.at]; c == '"' || c == '\'' {
		from, ends = e.at+1, string(c)
	}
	to := len(b)
	if n := bytes.IndexAny(b[from:], ends); n >= 0 {
		to = from + n
	}
	e.at = to
	if len(ends) == 1 {
		e.at = min(to+1, len(b))
	}
	return span{from, to, Masked}
}

package reply

import "github.com/recurgentd/recurgentd/internal/lazy"

// json reads an object in the text. An object without a program is skipped as a whole.
func (r *reader) json(i int) (piece, bool) {
	p := &lenient{s: r.s[i:], left: maxValues}
	v, ok := p.value()
	r.work -= p.i
	if !ok {
		return r.broken(i)
	}
	out := piece{end: i + p.i, literal: !p.loose && !p.open}
	r.add(&out, v, i, p.open)
	return out, true
}

// add adds the programs in a call's arguments to the piece.
func (r *reader) add(out *piece, v any, at int, open bool) {
	depth := r.depth + 1
	if open { // the arguments may contain anything else
		depth = maxNesting
	}
	for _, c := range r.programs(v, "", depth) {
		c.form, c.at, c.end, c.open = FormTextCall, at, out.end, open && c.rank != rankWhole
		c.marked = r.isMarked(at)
		out.candidates = append(out.candidates, c)
	}
}

var (
	codeMember = lazy.Regexp("^\\{[^{}]{0,200}?[\"']?\\bcode[\"']?\\s*[:=]\\s*\"")
	codeEnd    = lazy.Regexp(`"\s*(?:,\s*"\w+"\s*:|\}|$)`)
)

// broken reads an object whose code contains unescaped quotes, or that ends within its code.
func (r *reader) broken(i int) (piece, bool) {
	m := codeMember().FindStringIndex(r.s[i:])
	if m == nil {
		return piece{}, false
	}
	body := r.s[i+m[1]:]
	for at, tries := 0, 0; tries < maxTries && r.work > 0; tries++ {
		e := codeEnd().FindStringIndex(body[at:])
		if e == nil {
			break
		}
		end := at + e[0]
		if code, ok := r.literally(body[:end]); ok {
			return r.closedAt(i, i+m[1]+end, code), true
		}
		at = end + 1
	}
	c := candidate{form: FormTextCall, code: unescape(body, jsonEscapes), at: i, end: len(r.s), open: true}
	if code, ok := r.literally(body); ok {
		c.code = code
	}
	c.rank, r.begun = r.rank(c.code), i
	return piece{end: len(r.s), candidates: []candidate{c}}, true
}

// literally decodes the content of an invalid JSON string in several ways, and returns the first result that is a whole
// program.
func (r *reader) literally(raw string) (string, bool) {
	for _, code := range []string{unescape(raw, jsonEscapes), unescape(raw, quoteEscapes), raw} {
		if r.rank(code) == rankWhole {
			return code, true
		}
	}
	return "", false
}

// closedAt returns the call of a program whose string ends at end, with the members that follow it.
func (r *reader) closedAt(i, end int, code string) piece {
	args := newObject()
	p := &lenient{s: r.s[end+1:], left: maxValues}
	if v, ok := p.members('}'); ok {
		args = v.(*object)
	} else {
		p.i = 0
	}
	args.put("code", text{raw: code, value: code, style: styleRaw})
	c := candidate{form: FormTextCall, code: code, rank: rankWhole, args: args, at: i, end: end + 1 + p.i,
		marked: r.isMarked(i)}
	return piece{end: c.end, candidates: []candidate{c}}
}

var pythonCall = lazy.Regexp(`^(?i:submit_?program)\s*\(`)

// call reads a call in Python syntax.
func (r *reader) call(i int) (piece, bool) {
	m := pythonCall().FindString(r.s[i:min(len(r.s), i+40)])
	if m == "" || i > 0 && isWord(r.s[i-1]) {
		return piece{}, false
	}
	p := &lenient{s: r.s[i+len(m):], left: maxValues, python: true}
	args, ok := p.arguments()
	r.work -= p.i
	if !ok {
		return piece{}, false
	}
	out := piece{end: i + len(m) + p.i}
	r.add(&out, args, i, p.open)
	for k := range out.candidates {
		out.candidates[k].marked = true // by the tool's name
	}
	return out, len(out.candidates) > 0
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// arguments reads name=value, ... up to the closing parenthesis. A positional argument is the code or, if it is an
// object, all arguments.
func (p *lenient) arguments() (*object, bool) {
	o := newObject()
	for {
		p.space()
		switch {
		case p.i >= len(p.s):
			p.open = true
			return o, len(o.keys) > 0
		case p.peek() == ')':
			p.i++
			return o, true
		case p.peek() == ',':
			p.i++
			continue
		}
		at := p.i
		key, ok := p.key()
		if !ok || !p.colon() {
			p.i, key = at, ""
		}
		v, ok := p.value()
		if !ok {
			return o, false
		}
		switch all, isObject := v.(*object); {
		case key != "":
			o.put(key, v)
		case isObject:
			o = all
		default:
			o.put("code", v)
		}
	}
}

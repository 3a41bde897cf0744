package mask

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// assignment masks the value assigned by the = or : at i, if the name before it calls for it. It returns the index at
// which to continue.
func (p *pass) assignment(i int) int {
	name, quotes := nameBefore(p.b, i)
	p.steps += len(name) + len(quotes)
	how := p.rules.match(name)
	if how == never {
		return i + 1
	}
	at := i + 1
	if at < len(p.b) && (p.b[at] == '=' && p.b[i] == ':' || p.b[at] == '>') {
		at++ // := and =>
	} else if at < len(p.b) && p.b[at] == '=' {
		return at + 1 // ==
	}
	tight := at < len(p.b) && p.b[at] != ' '
	for n := 0; n < 4 && at < len(p.b) && p.b[at] == ' '; n++ {
		at++
	}
	v := value{from: at, to: at, quotes: quotes, attached: tight && p.b[i] == '=', opaque: how == looking}
	p.read(&v, name)
	if v.to <= v.from || alreadyMasked(p.b[v.from:v.to]) || literal(p.b[v.from:v.to]) {
		return max(at, i+1)
	}
	if v.opaque && v.to-v.from > longestInText || (v.opaque || v.prose) && !p.opaque(p.b[v.from:v.to]) {
		return max(at, i+1)
	}
	p.all = append(p.all, span{v.from, v.to, v.with(p.b)})
	return v.to
}

// nameBefore returns the name that ends before i, and the quotation mark around it with the backslashes that escape it.
func nameBefore(b []byte, i int) (name, quotes []byte) {
	end := i
	for end > 0 && b[end-1] == ' ' && i-end < 3 {
		end--
	}
	quotes = quotesBefore(b, end)
	end -= len(quotes)
	for end > 0 && b[end-1] == ']' {
		end-- // user[password]=
	}
	from := end
	for from > 0 && end-from < 80 && nameChar(b[from-1]) {
		from--
	}
	return b[from:end], quotes
}

// quotesBefore returns the quotation mark that ends at end, with the backslashes before it.
func quotesBefore(b []byte, end int) []byte {
	if end == 0 || b[end-1] != '"' && b[end-1] != '\'' {
		return nil
	}
	from := end - 1
	for from > 0 && b[from-1] == '\\' {
		from--
	}
	return b[from:end]
}

// nameChar reports whether c may be part of an assigned name.
func nameChar(c byte) bool { return alphanumeric(c) || separator(c) && c != ' ' }

// A value is the text assigned to a name.
type value struct {
	from, to int
	quotes   []byte // of the name
	attached bool   // directly follows an =
	prose    bool   // words follow it, so it may be part of a sentence
	bare     bool   // unquoted, as in JSON
	opaque   bool   // to be masked only if it is opaque
}

// with returns the replacement of the value.
func (v *value) with(b []byte) string {
	if v.bare && len(v.quotes) > 0 {
		return string(v.quotes) + Masked + string(v.quotes)
	}
	return Masked
}

// longestInText bounds values in a text that are masked only if they are opaque.
const longestInText = 2048

// read finds the bounds of the value. A value that is read and then left alone is read again for the next name in it.
// To stay linear, a value that must be opaque to be masked is read no further than longestInText.
func (p *pass) read(v *value, name []byte) {
	b := p.b
	if v.opaque {
		b = b[:min(len(b), v.from+longestInText+1)]
	}
	if v.from == len(b) {
		return
	}
	if quotes := quotesAt(b, v.from); quotes != nil {
		v.from += len(quotes)
		v.to = v.from
		if beginsMasked(b[v.from:]) {
			v.to += len(Masked) - 1
			return
		}
		if n := bytes.Index(b[v.from:], quotes); n >= 0 {
			v.to += n
		} else {
			v.to = p.unclosed(b, v.from)
		}
		for len(quotes) == 1 && v.to < len(b) && v.to > v.from && b[v.to-1] == '\\' { // an escaped quotation mark
			n := bytes.Index(b[v.to+1:], quotes)
			if n < 0 {
				v.to = lineEnd(b, v.to)
				break
			}
			v.to += 1 + n
		}
		p.steps += v.to - v.from
		return
	}
	if len(v.quotes) > 0 && (b[v.from] == '{' || b[v.from] == '[') && !beginsMasked(b[v.from:]) {
		if v.opaque { // an object or list is not opaque
			return
		}
		v.bare, v.to = true, closing(b, v.from)
		p.steps += v.to - v.from
		return
	}
	w := p.wordAt(v.from)
	v.to = min(w.to, len(b))
	if len(v.quotes) > 0 {
		v.bare = true
		return
	}
	if from, to := header(b, v.from, v.to, w.equals, name); to > 0 {
		p.steps += to - v.from
		v.from, v.to = from, to
		return
	}
	v.prose = !v.attached && w.followed
}

// unclosed returns the end of a value that begins at i and lacks its closing quotation mark: the end of its line. After
// 16 of them it returns the end of the text, because each one was searched for in all the rest.
func (p *pass) unclosed(b []byte, i int) int {
	const most = 16
	p.steps += len(b) - i
	if p.open++; p.open > most && len(b) == len(p.b) {
		return len(b)
	}
	return lineEnd(b, i)
}

// An unquoted is a stretch of text without characters that end an unquoted value.
type unquoted struct {
	from, to int
	equals   int  // index of its last =, or -1
	followed bool // words follow it
}

// wordAt returns the unquoted stretch around i. Each stretch is scanned once, however many names it contains.
func (p *pass) wordAt(i int) unquoted {
	if i < p.word.from || i >= p.word.to {
		w := unquoted{from: i, to: i, equals: -1}
		for ; w.to < len(p.b) && !endsValues[p.b[w.to]]; w.to++ {
			if p.b[w.to] == '=' {
				w.equals = w.to
			}
		}
		p.steps += w.to - i
		w.followed = wordFollows(p.b, w.to)
		p.word = w
	}
	return p.word
}

// endsValues marks the bytes that end an unquoted value.
var endsValues = func() (table [256]bool) {
	for c := range table {
		table[c] = c <= ' ' || strings.IndexByte(`,;&"'<>)]}\|`+"`", byte(c)) >= 0
	}
	return table
}()

// wordFollows reports whether words follow after to in the same line: "password: must be long".
func wordFollows(b []byte, to int) bool {
	i := to
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i > to && i < len(b) && (alphanumeric(b[i]) || b[i] >= utf8.RuneSelf) && !assigns(b[i:])
}

// assigns reports whether another assignment follows: "user=a password=b host=c".
func assigns(b []byte) bool {
	i := 0
	for i < len(b) && nameChar(b[i]) {
		i++
	}
	return i < len(b) && (b[i] == '=' || b[i] == ':')
}

// quotesAt returns the quotation mark at i, with the backslashes before it, or nil.
func quotesAt(b []byte, i int) []byte {
	end := i
	for end < len(b) && b[end] == '\\' {
		end++
	}
	if end < len(b) && (b[end] == '"' || b[end] == '\'' || b[end] == '`') {
		return b[i : end+1]
	}
	return nil
}

// closing returns the index after the bracket that closes the one at i, or the end of the text if there is none.
func closing(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// alreadyMasked reports whether b is the mask of an earlier pass, which must not be masked again.
func alreadyMasked(b []byte) bool { return beginsMasked(b) || bytes.EqualFold(b, []byte(inURL)) }

// beginsMasked reports whether b begins with a mask. The closing bracket may be missing, because it ends an unquoted
// value.
func beginsMasked(b []byte) bool { return bytes.HasPrefix(b, []byte(Masked[:len(Masked)-1])) }

// literal reports whether the value is null, true or false in some language's spelling, and so not a secret.
func literal(b []byte) bool {
	switch string(b) {
	case "null", "true", "false", "NULL", "Null", "None", "True", "False", "nil", "undefined":
		return true
	}
	return false
}

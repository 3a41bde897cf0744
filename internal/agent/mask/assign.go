package mask

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// assignment masks the value of a name with = or : at i behind it, and returns where to go on.
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

// nameBefore returns the name that ends before i, and the quotes around it, with what escapes them.
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

// quotesBefore returns a quotation mark that ends at end, with the backslashes before it.
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

func nameChar(c byte) bool { return alphanumeric(c) || separator(c) && c != ' ' }

// A value is what is assigned to a name.
type value struct {
	from, to int
	quotes   []byte // of the name
	attached bool   // right behind a =
	prose    bool   // words follow: it may be a sentence
	bare     bool   // of JSON, without quotes of its own
	opaque   bool   // it counts only if it is opaque
}

// with is what stands in its place.
func (v *value) with(b []byte) string {
	if v.bare && len(v.quotes) > 0 {
		return string(v.quotes) + Masked + string(v.quotes)
	}
	return Masked
}

// longestInText bounds a value within a text that counts only if it is opaque.
const longestInText = 2048

// read finds the end of the value. What is looked through and then left is looked through again for the next name in it, so one that counts
// only if it is opaque is not followed further than such a value is long.
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
		if v.opaque { // an object is not
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

// unclosed returns where a value from i on ends whose quotation mark is not closed: with its line, or after many of them with the text, as
// each was looked for in all the rest.
func (p *pass) unclosed(b []byte, i int) int {
	const most = 16
	p.steps += len(b) - i
	if p.open++; p.open > most && len(b) == len(p.b) {
		return len(b)
	}
	return lineEnd(b, i)
}

// An unquoted is a stretch of text without a character that ends a value.
type unquoted struct {
	from, to int
	equals   int  // where its last = is
	followed bool // by words
}

// wordAt returns the stretch that i is in. It is looked through once, however many names are in it.
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

// endsValues has the characters that end a value without quotes.
var endsValues = func() (table [256]bool) {
	for c := range table {
		table[c] = c <= ' ' || strings.IndexByte(`,;&"'<>)]}\|`+"`", byte(c)) >= 0
	}
	return table
}()

// wordFollows reports whether text goes on behind to in the same line: "password: must be long".
func wordFollows(b []byte, to int) bool {
	i := to
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	return i > to && i < len(b) && (alphanumeric(b[i]) || b[i] >= utf8.RuneSelf) && !assigns(b[i:])
}

// assigns reports whether what follows is another assignment: "user=a password=b host=c".
func assigns(b []byte) bool {
	i := 0
	for i < len(b) && nameChar(b[i]) {
		i++
	}
	return i < len(b) && (b[i] == '=' || b[i] == ':')
}

// quotesAt returns the quotation mark at i, with the backslashes before it.
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

// closing returns the index behind the bracket that closes the one at i; the end of the text where there is none.
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

func alreadyMasked(b []byte) bool { return beginsMasked(b) || bytes.EqualFold(b, []byte(inURL)) }

func beginsMasked(b []byte) bool { return bytes.HasPrefix(b, []byte(Masked[:len(Masked)-1])) }

// literal reports whether a value is none: null, true or false, as languages write them.
func literal(b []byte) bool {
	switch string(b) {
	case "null", "true", "false", "NULL", "Null", "None", "True", "False", "nil", "undefined":
		return true
	}
	return false
}

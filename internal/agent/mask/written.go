package mask

import (
	"html"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A letter is one byte of a text after decoding, with its place in the source. An escape becomes one letter that spans
// several bytes.
type letter struct {
	c        byte
	from, to int
}

// longestEscape is the length of \u0026; longestWritten that of the longest escape that is decoded, a pair of those.
const (
	longestEscape  = 6
	longestWritten = 12
)

// A reading decodes the escapes of URLs, of strings in JSON and other languages, and of HTML, nested to any depth. A
// decoded character is read again as if it had been written, so a text and its escaped forms read the same. Each byte
// takes bounded time.
type reading struct {
	emit func(letter)
	held [16]letter // a ring, beginning with a character that may begin an escape
	head int
	n    int

	steps int // letters examined as parts of escapes
}

// push reads one letter. The recursion ends because each escape is longer than its decoded text.
func (r *reading) push(l letter) {
	if r.n == 0 && !introduces(l.c) {
		r.emit(l)
		return
	}
	r.held[(r.head+r.n)&15] = l
	r.n++
	if meant, size := r.escape(); size > 0 {
		r.n -= size
		from := r.held[(r.head+r.n)&15].from
		for i := range len(meant) {
			r.push(letter{meant[i], from, l.to}) // the held letters became fewer
		}
	}
	for r.n > longestWritten || r.n > 0 && !introduces(r.held[r.head].c) {
		r.emitFirst()
	}
}

// emitFirst emits the first held letter.
func (r *reading) emitFirst() {
	l := r.held[r.head]
	r.head, r.n = (r.head+1)&15, r.n-1
	r.emit(l)
}

// end emits the letters still held.
func (r *reading) end() {
	for r.n > 0 {
		r.emitFirst()
	}
}

// introduces reports whether c may begin an escape.
func introduces(c byte) bool { return c == '%' || c == '\\' || c == '&' }

// escape returns the decoded text of the escape at the end of the held letters and the escape's length, or 0.
func (r *reading) escape() (meant string, size int) {
	var text [16]byte
	for i := range r.n {
		text[i] = r.held[(r.head+i)&15].c
	}
	r.steps += r.n
	for i := range r.n - 1 {
		if introduces(text[i]) {
			r.steps += r.n - i
			if meant := meaning(text[i:r.n]); meant != "" {
				return meant, r.n - i
			}
		}
	}
	return "", 0
}

// meaning returns the decoded text of a complete escape, or "" for other text.
func meaning(e []byte) string {
	last := e[len(e)-1]
	switch {
	case e[0] == '&':
		if last == ';' {
			if meant := html.UnescapeString(string(e)); meant != string(e) {
				return meant
			}
		}
	case e[0] == '%':
		if len(e) == 3 {
			return number(e[1:], 16, 1)
		}
	case len(e) == 2:
		if c := escaped(last); c != 0 {
			return string([]byte{c})
		}
	case e[1] == 'x' && len(e) == 4:
		return number(e[2:], 16, 1)
	case e[1] == 'u' && e[2] == '{' && last == '}':
		return number(e[3:len(e)-1], 16, 4)
	case e[1] == 'u' && len(e) == longestEscape:
		return number(e[2:], 16, 4)
	case e[1] == 'u' && len(e) == longestWritten && e[6] == '\\' && e[7] == 'u':
		return pair(e)
	case e[1] == 'U' && len(e) == 10:
		return number(e[2:], 16, 4)
	case len(e) == 4:
		return number(e[1:], 8, 1)
	}
	return ""
}

// number returns the character with that code: a byte if size is 1, otherwise in UTF-8. It returns "" for invalid
// digits.
func number(digits []byte, base, size int) string {
	for _, c := range digits {
		if unhex(c) >= base {
			return ""
		}
	}
	v, err := strconv.ParseUint(string(digits), base, 32)
	switch {
	case err != nil || size == 1 && v > 0xff:
		return ""
	case size == 1:
		return string([]byte{byte(v)})
	case v > unicode.MaxRune || utf16.IsSurrogate(rune(v)):
		return ""
	}
	return string(rune(v))
}

// pair returns the character of a pair of surrogate escapes, or "".
func pair(e []byte) string {
	r, n := unicodeEscape(e)
	if n != len(e) || r == utf8.RuneError {
		return ""
	}
	return string(r)
}

// A folding maps letters to lower case, and a plus sign to the space that it encodes in forms.
type folding struct {
	emit func(letter)
	rune []byte // the beginning of a multi-byte character
	from int
}

// push folds one letter. It collects the bytes of a multi-byte character until the character is complete.
func (f *folding) push(l letter) {
	switch {
	case l.c < utf8.RuneSelf:
		f.end(l.from)
		l.c = foldedByte(l.c)
		f.emit(l)
		return
	case utf8.RuneStart(l.c):
		f.end(l.from)
		f.from = l.from
	case len(f.rune) == 0:
		f.emit(l)
		return
	}
	f.rune = append(f.rune, l.c)
	if utf8.FullRune(f.rune) {
		f.end(l.to)
	}
}

// end emits the pending character, complete or not.
func (f *folding) end(to int) {
	if len(f.rune) == 0 {
		return
	}
	whole := f.rune
	if r, n := utf8.DecodeRune(whole); r != utf8.RuneError && n == len(whole) {
		whole = utf8.AppendRune(whole[:0:0], unicode.ToLower(r))
	}
	for _, c := range whole {
		f.emit(letter{c, f.from, to})
	}
	f.rune = f.rune[:0]
}

func foldedByte(c byte) byte {
	if c == '+' {
		return ' '
	}
	return lower(c)
}

// folded returns the text after folding.
func folded(text string) string {
	var out []byte
	f := folding{emit: func(l letter) { out = append(out, l.c) }}
	for i := range len(text) {
		f.push(letter{text[i], i, i + 1})
	}
	f.end(len(text))
	return string(out)
}

// meant returns the text with its escapes decoded.
func meant(text string) string {
	var out []byte
	r := reading{emit: func(l letter) { out = append(out, l.c) }}
	for i := range len(text) {
		r.push(letter{text[i], i, i + 1})
	}
	r.end()
	return string(out)
}

package mask

import (
	"html"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// A letter is one byte of a text as it is meant, with where it is written: an escape is one letter of several bytes.
type letter struct {
	c        byte
	from, to int
}

// longestEscape is that of one character as JSON has it, \u0026, longestWritten that of any escape which is read: a pair of those.
const (
	longestEscape  = 6
	longestWritten = 12
)

// A reading takes back the escapes of a text, those of URLs, of strings in JSON and other languages, and of HTML, in each other as often as they
// were made: what an escape stands for is read like what was written, so that a text and its escaped forms read the same. It takes a bounded
// time for each byte.
type reading struct {
	emit func(letter)
	held [16]letter // from a character on that may begin an escape; a ring
	head int
	n    int

	steps int // letters that were looked at as parts of escapes
}

// push reads one letter.
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
			r.push(letter{meant[i], from, l.to}) // what is held became shorter, so this ends
		}
	}
	for r.n > longestWritten || r.n > 0 && !introduces(r.held[r.head].c) {
		r.emitFirst()
	}
}

func (r *reading) emitFirst() {
	l := r.held[r.head]
	r.head, r.n = (r.head+1)&15, r.n-1
	r.emit(l)
}

// end emits what is still held.
func (r *reading) end() {
	for r.n > 0 {
		r.emitFirst()
	}
}

func introduces(c byte) bool { return c == '%' || c == '\\' || c == '&' }

// escape returns what the last letters held stand for, and how many they are; 0 where they are no escape.
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

// meaning is what a whole escape stands for; "" of other text.
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

// number is the byte, or the character of more than one, that the digits stand for; "" of others.
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

// pair is the character of two escapes that are surrogates; "" of others.
func pair(e []byte) string {
	r, n := unicodeEscape(e)
	if n != len(e) || r == utf8.RuneError {
		return ""
	}
	return string(r)
}

// A folding makes letters of either case one, and a plus sign a blank, which it stands for in forms.
type folding struct {
	emit func(letter)
	rune []byte // the beginning of a character of several bytes
	from int
}

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

// end emits the character that is not whole, or is now.
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

// folded is the text with its letters folded.
func folded(text string) string {
	var out []byte
	f := folding{emit: func(l letter) { out = append(out, l.c) }}
	for i := range len(text) {
		f.push(letter{text[i], i, i + 1})
	}
	f.end(len(text))
	return string(out)
}

// meant is the text with its escapes taken back.
func meant(text string) string {
	var out []byte
	r := reading{emit: func(l letter) { out = append(out, l.c) }}
	for i := range len(text) {
		r.push(letter{text[i], i, i + 1})
	}
	r.end()
	return string(out)
}

// Package charsets guesses the character set of a text and decodes it. Spreadsheets and office programs save text in
// UTF-8 with and without a byte order mark, in UTF-16, and in the character set of their machine's language, and few
// files declare which.
//
// Names are those of the WHATWG Encoding Standard, such as utf-8, utf-16le and windows-1252, and ibm850, which the
// standard lacks. The package treats all bytes as hostile: memory use does not grow with their number, and time is
// linear in it.
package charsets

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// UTF8 is the name of UTF-8.
const UTF8 = "utf-8"

// latin is the fallback: the character set of programs that know only that of Western Europe and America.
const latin = "windows-1252"

// dos is the character set of DOS programs in Western Europe.
const dos = "ibm850"

// sampled bounds the bytes from which a character set is guessed that is neither marked nor Unicode.
const sampled = 64 << 10

// marks are the byte order marks.
var marks = []struct{ mark, name string }{{"\xef\xbb\xbf", UTF8}, {"\xfe\xff", "utf-16be"}, {"\xff\xfe", "utf-16le"}}

// wideMark is the byte order mark of UTF-32, which begins as that of UTF-16. The Encoding Standard lacks UTF-32.
const wideMark = "\xff\xfe\x00\x00"

// Guess reads a file and returns the name of its character set, or "" for binary data. A byte order mark has
// precedence, then the parameter charset of the media type, then UTF-8 if the file is valid but for few bytes, then the
// declaration of an XML or HTML document. Otherwise the name is guessed from the file's beginning, starting before the
// first byte that is not ASCII: UTF-16, Chinese, Japanese, Korean, Cyrillic or Greek if hardly anything else is
// possible, else windows-1252. The error is that of reading.
func Guess(r io.Reader, mediaType string) (string, error) {
	var s scan
	if _, err := io.CopyBuffer(&s, struct{ io.Reader }{r}, make([]byte, 32<<10)); err != nil {
		return "", err
	}
	return s.name(mediaType), nil
}

// GuessFrom calls Guess for the file from its current position, and then seeks to its beginning.
func GuessFrom(r io.ReadSeeker, mediaType string) (string, error) {
	name, err := Guess(r, mediaType)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	return name, err
}

// A scan receives the bytes of a file in pieces.
type scan struct {
	first   []byte // the first kindBytes of the file
	sample  []byte // the first bytes from the one before the first that is not ASCII on
	last    []byte // the last byte of the last piece
	rest    []byte // an incomplete character at the end of the last piece
	others  int    // characters of UTF-8 other than ASCII
	invalid int    // bytes that are not UTF-8
}

// kindBytes is how many bytes determine the kind of a file.
const kindBytes = 512

func (s *scan) Write(p []byte) (int, error) {
	if room := kindBytes - len(s.first); room > 0 {
		s.first = append(s.first, p[:min(len(p), room)]...)
	}
	from := 0
	if len(s.sample) == 0 {
		from = bytes.IndexFunc(p, func(r rune) bool { return r >= utf8.RuneSelf })
		switch {
		case from == 0:
			s.sample = append(s.sample, s.last...)
		case from > 0:
			from--
		}
	}
	if from >= 0 && len(s.sample) < sampled {
		s.sample = append(s.sample, p[from:min(len(p), from+sampled-len(s.sample))]...)
	}
	s.last = append(s.last[:0], p[max(0, len(p)-1):]...)
	if !s.hopeless() {
		s.check(p)
	}
	return len(p), nil
}

// hopeless reports whether so many bytes are not UTF-8 that the rest of the file need not be read as such.
func (s *scan) hopeless() bool { return s.invalid > 1000 && s.invalid > 100*s.others }

// check counts the characters and the errors of the next piece, read as UTF-8.
func (s *scan) check(p []byte) {
	text := p
	if len(s.rest) > 0 {
		text = append(s.rest, p...)
	}
	whole := len(text)
	for back := 1; back <= min(utf8.UTFMax, len(text)); back++ {
		if b := text[len(text)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole = len(text) - back
			}
			break
		}
	}
	s.rest = bytes.Clone(text[whole:])
	if text = text[:whole]; utf8.Valid(text) {
		for _, b := range text {
			if b >= 0xc0 {
				s.others++
			}
		}
		return
	}
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if i += n; r == utf8.RuneError && n == 1 {
			s.invalid++
		} else {
			s.others++
		}
	}
}

// name returns the character set of the bytes written so far, or "" for binary data. See Guess for the order.
func (s *scan) name(mediaType string) string {
	if bytes.HasPrefix(s.first, []byte(wideMark)) {
		return ""
	}
	if name, _ := Marked(s.first); name != "" {
		return name
	}
	if name := wide(s.first); name != "" {
		return name
	}
	first := s.first
	if len(first) < kindBytes { // first is the whole file
		first = bytes.TrimSuffix(first, []byte{dosEnd})
	}
	if !textual(first) {
		return ""
	}
	if _, params, err := mime.ParseMediaType(mediaType); err == nil {
		if _, name := Lookup(params["charset"]); name != "" && (name != UTF8 || s.utf8(1)) {
			return name
		}
	}
	if s.utf8(undeclared) {
		return UTF8
	}
	if name := ofDocument(s.first); name != "" && (name != UTF8 || s.utf8(1)) {
		return name
	}
	return guess(s.sample)
}

// undeclared is how many characters other than ASCII outweigh a byte that is not UTF-8 where nothing declares UTF-8. In
// other character sets, bytes that form such characters are rare.
const undeclared = 4

// utf8 reports whether the text is UTF-8, but for damaged bytes that are outweighed by at least so many characters
// each. A text that ends within a character is UTF-8 if a complete character that is not ASCII precedes it.
func (s *scan) utf8(outweigh int) bool {
	return s.others >= outweigh*s.invalid && (len(s.rest) == 0 || s.others > 0)
}

// MostlyUTF8 reports whether a text is UTF-8 but for few bytes.
func MostlyUTF8(text []byte) bool {
	var s scan
	s.check(text)
	return s.utf8(undeclared)
}

// Wide returns the name of UTF-16 for the beginning of a text in it that has no byte order mark, or "".
func Wide(text []byte) string { return wide(text[:min(len(text), kindBytes)]) }

// Textual reports whether a body with this beginning may be text, whatever its media type says.
func Textual(text []byte) bool {
	mark, _ := Marked(text)
	return mark != "" || Wide(text) != "" || textual(text[:min(len(text), kindBytes)])
}

// wide returns the name of UTF-16 without a byte order mark, or "". In such text, most characters have a zero byte at
// the same place of each pair.
func wide(first []byte) string {
	if len(first) < 8 {
		return ""
	}
	var zeros [2]int
	for i, b := range first[:len(first)&^1] {
		if b == 0 {
			zeros[i%2]++
		}
	}
	half := len(first) / 2
	switch {
	case zeros[0] == 0 && zeros[1] > half*2/3:
		return "utf-16le"
	case zeros[1] == 0 && zeros[0] > half*2/3:
		return "utf-16be"
	}
	return ""
}

// textual reports whether a file with this beginning may be text: it contains no bytes of binary data, as listed by the
// WHATWG MIME Sniffing Standard, except the separators with which databases export lines and repetitions within a
// field. The signatures of images and fonts prove nothing, because a table may begin with a column named BMI or OTTO. A
// PDF is not text, although it begins as such.
func textual(first []byte) bool {
	return !bytes.HasPrefix(first, []byte("%PDF-")) && !bytes.ContainsFunc(first, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b\x1c\x1d\x1e\x1f", r)
	})
}

// Marked returns the character set of the byte order mark at the beginning of the text, and the text after it. Without
// a mark, name is "" and rest is text.
func Marked(text []byte) (name string, rest []byte) {
	for _, m := range marks {
		if rest, ok := bytes.CutPrefix(text, []byte(m.mark)); ok {
			return m.name, rest
		}
	}
	return "", text
}

// Lookup returns the encoding of a label and its name, or nil and "" for an unknown label.
func Lookup(label string) (encoding.Encoding, string) {
	switch strings.ToLower(strings.TrimSpace(label)) {
	case dos, "cp850", "850":
		return charmap.CodePage850, dos
	}
	switch from, name := charset.Lookup(label); name {
	case "", "replacement":
		return nil, ""
	case UTF8:
		return unicode.UTF8, UTF8
	default:
		return from, name
	}
}

// foreign maps character sets that cannot be mistaken for windows-1252 to the least confidence, of 100, with which they
// are accepted. 0 means that most letters must not be ASCII.
var foreign = map[string]int{"GB18030": 80, "GB-18030": 80, "Big5": 80, "EUC-JP": 80, "EUC-KR": 80, "Shift_JIS": 80,
	"windows-1251": 0, "KOI8-R": 0, "ISO-8859-5": 0, "ISO-8859-7": 0, "windows-1253": 0}

// guess returns the most likely character set of a sample that is not Unicode, by default latin.
func guess(sample []byte) string {
	results, _ := chardet.NewTextDetector().DetectAll(sample) // no result is its only error
	others := mostlyForeign(sample)
	for _, r := range results {
		least, listed := foreign[r.Charset]
		if _, name := Lookup(strings.Replace(r.Charset, "GB-", "gb",
			1)); listed && name != "" && (least > 0 && r.Confidence >= least || least == 0 && others) {
			return name
		}
	}
	if ofDOS(sample) {
		return dos
	}
	return latin
}

// ofDOS reports whether a text in the Latin alphabet is in dos. It has no letters of windows-1252. Within words it has
// bytes that stand for umlauts in dos, and for signs, quotation marks or nothing in windows-1252.
func ofDOS(sample []byte) bool {
	const sharp = 0xe1 // ß in dos
	in := func(i int, from, to byte) bool {
		return i >= 0 && i < len(sample) && sample[i] >= from && sample[i] <= to
	}
	letter := func(i int) bool { return in(i, 'a', 'z') || in(i, 'A', 'Z') }
	within := false
	for i, b := range sample {
		switch {
		case b == 0x81 || b == 0x84 || b == 0x94: // ü, ä, ö
			within = within || letter(i-1) && (letter(i+1) || in(i+1, sharp, sharp))
			if !letter(i-1) && !letter(i+1) {
				return false
			}
		case b == 0x99 || b == 0x9a: // Ö, Ü; in windows-1252 a sign and a small letter
			within = within || in(i-1, 'A', 'Z') && in(i+1, 'A', 'Z')
		// lines of DOS tables do not touch letters
		case b >= 0xc0 && b != sharp && (letter(i-1) || letter(i+1)):
			return false
		}
	}
	return within
}

// mostlyForeign reports whether most letters are not ASCII, which is not the case in any language with the Latin
// alphabet.
func mostlyForeign(sample []byte) bool {
	var high, letters int
	for _, b := range sample {
		switch {
		case b >= utf8.RuneSelf:
			high++
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			letters++
		}
	}
	return high > letters
}

// NewReader returns a Reader that decodes text to UTF-8 without a byte order mark. Invalid bytes become U+FFFD. Line
// ends of CR alone become LF, the end mark of DOS files is omitted, and an XML declaration is changed to UTF-8. It
// returns an error for an unknown name.
func NewReader(r io.Reader, name string) (*Reader, error) {
	from, official := Lookup(name)
	var decoder transform.Transformer
	switch official {
	case "":
		return nil, fmt.Errorf("the character set %.40q is not known", name)
	case UTF8:
		decoder = unicode.UTF8BOM.NewDecoder()
	case "utf-16le":
		decoder = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
	case "utf-16be":
		decoder = unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()
	default:
		decoder = from.NewDecoder()
	}
	lines := &lineEnds{}
	return &Reader{&documentReader{in: transform.NewReader(transform.NewReader(r, decoder), lines)}, lines}, nil
}

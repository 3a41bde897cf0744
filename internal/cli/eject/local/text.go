package local

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Latin is the character set assumed for text that is neither Unicode nor binary.
const Latin = "windows-1252"

// utf8Name is the name of UTF-8 as a character set.
const utf8Name = "utf-8"

// dosEnd is Ctrl-Z, with which DOS programs end text files.
const dosEnd = "\x1a"

// Charset returns the character set of a text: that of its byte order mark, UTF-8 if it is valid UTF-8, otherwise
// windows-1252. It returns "" for binary data.
func Charset(text []byte) string {
	switch {
	case bytes.HasPrefix(text, []byte("\xff\xfe")):
		return "utf-16le"
	case bytes.HasPrefix(text, []byte("\xfe\xff")):
		return "utf-16be"
	case bytes.IndexByte(text[:min(len(text), 512)], 0) >= 0:
		return ""
	case utf8.Valid(text):
		return utf8Name
	}
	return Latin
}

// decoded returns the text in UTF-8, without a byte order mark and the end-of-file mark of DOS. If lines end in CR
// alone, it uses LF.
func decoded(text []byte, name string) io.Reader {
	whole := strings.TrimSuffix(inUTF8(text, name), dosEnd)
	if i := strings.IndexAny(whole, "\r\n"); i >= 0 && whole[i] == '\r' && !strings.HasPrefix(whole[i:], "\r\n") {
		whole = strings.NewReplacer("\r\n", "\r\n", "\r", "\n").Replace(whole)
	}
	return strings.NewReader(inXML(whole))
}

// xmlDeclaration matches the encoding that an XML document declares.
var xmlDeclaration = regexp.MustCompile(
	`^\s*<\?xml[^>]{0,200}?\sencoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._:-]{1,40})["']`)

// inXML changes the encoding declared by a decoded XML document to UTF-8, because parsers reject a mismatch.
func inXML(text string) string {
	m := xmlDeclaration.FindStringSubmatchIndex(text[:min(len(text), 512)])
	if m == nil || strings.EqualFold(text[m[2]:m[3]], utf8Name) {
		return text
	}
	return text[:m[2]] + "UTF-8" + text[m[3]:]
}

// inUTF8 converts text from the named character set to UTF-8, without a byte order mark.
func inUTF8(text []byte, name string) string {
	switch name {
	case utf8Name:
		return string(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	case Latin:
		var b strings.Builder
		for _, c := range text {
			b.WriteRune(latin(c))
		}
		return b.String()
	}
	text = text[2:] // skip the byte order mark
	units := make([]uint16, len(text)/2)
	for i := range units {
		low, high := text[2*i], text[2*i+1]
		if name == "utf-16be" {
			low, high = high, low
		}
		units[i] = uint16(high)<<8 | uint16(low)
	}
	return string(utf16.Decode(units))
}

// latin returns the windows-1252 character of the byte.
func latin(c byte) rune {
	if c < 0x80 || c >= 0xa0 {
		return rune(c)
	}
	return []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")[c-0x80]
}

// A decoding accepts bytes and then returns them as text.
type decoding struct {
	in   []byte
	text io.Reader // set by the first Read
}

func (d *decoding) Write(p []byte) (int, error) {
	d.in = append(d.in, p...)
	return len(p), nil
}

func (d *decoding) Read(p []byte) (int, error) {
	if d.text == nil {
		name := Charset(d.in)
		if name == "" {
			return 0, &recurgent.Failure{Type: "parse_failed", Message: "decode: the bytes are no text"}
		}
		d.text = decoded(d.in, name)
	}
	return d.text.Read(p)
}

func (d *decoding) Close() error { return nil }

// readWhole reads and closes a file. The character set can be determined only from the whole file.
func readWhole(f io.ReadCloser) ([]byte, error) {
	defer f.Close()
	return io.ReadAll(f)
}

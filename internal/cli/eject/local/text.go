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

// Latin is the character set of what is neither Unicode nor binary data.
const Latin = "windows-1252"

const utf8Name = "utf-8"

const dosEnd = "\x1a"

// Charset returns the character set of a text: that of its byte order mark, UTF-8 if the text is valid UTF-8, else windows-1252. It returns "" for binary data.
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

// decoded is the text in UTF-8, without a byte order mark and the mark with which DOS ends a file, and with LF for line ends of CR alone.
func decoded(text []byte, name string) io.Reader {
	whole := strings.TrimSuffix(inUTF8(text, name), dosEnd)
	if i := strings.IndexAny(whole, "\r\n"); i >= 0 && whole[i] == '\r' && !strings.HasPrefix(whole[i:], "\r\n") {
		whole = strings.NewReplacer("\r\n", "\r\n", "\r", "\n").Replace(whole)
	}
	return strings.NewReader(inXML(whole))
}

// xmlDeclaration finds what an XML document says of its own encoding.
var xmlDeclaration = regexp.MustCompile(
	`^\s*<\?xml[^>]{0,200}?\sencoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._:-]{1,40})["']`)

// inXML has an XML document that was decoded say so: parsers refuse one that names another encoding.
func inXML(text string) string {
	m := xmlDeclaration.FindStringSubmatchIndex(text[:min(len(text), 512)])
	if m == nil || strings.EqualFold(text[m[2]:m[3]], utf8Name) {
		return text
	}
	return text[:m[2]] + "UTF-8" + text[m[3]:]
}

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
	text = text[2:] // the mark
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

// latin is the character of windows-1252 that the byte stands for.
func latin(c byte) rune {
	if c < 0x80 || c >= 0xa0 {
		return rune(c)
	}
	return []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")[c-0x80]
}

// A decoding takes bytes, and then gives the text that they are.
type decoding struct {
	in   []byte
	text io.Reader // once it is read
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

// readWhole reads a file, as one has to for its character set.
func readWhole(f io.ReadCloser) ([]byte, error) {
	defer f.Close()
	return io.ReadAll(f)
}

package local

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Character sets of texts that are read here.
const (
	utf8Name  = "utf-8"
	latinName = "windows-1252"
)

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
	return latinName
}

// decoded is the text in UTF-8, without a byte order mark.
func decoded(text []byte, name string) io.Reader {
	switch name {
	case utf8Name:
		return bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	case latinName:
		var b strings.Builder
		for _, c := range text {
			b.WriteRune(latin(c))
		}
		return strings.NewReader(b.String())
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
	return strings.NewReader(string(utf16.Decode(units)))
}

// latin is the character of windows-1252 that the byte stands for.
func latin(c byte) rune {
	if c < 0x80 || c >= 0xa0 {
		return rune(c)
	}
	return []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")[c-0x80]
}

// readWhole reads a file, as one has to for its character set.
func readWhole(f io.ReadCloser) ([]byte, error) {
	defer f.Close()
	return io.ReadAll(f)
}

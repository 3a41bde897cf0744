package charsets

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// declared is within how many bytes documents say their character set.
const declared = 512

// xmlDeclaration finds what an XML document says of its own encoding.
var xmlDeclaration = lazy.Regexp(`^\s*<\?xml[^>]{0,200}?\sencoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._:-]{1,40})["']`)

// OfXML returns the character set that an XML document names, "" where it names none that bytes could be read in.
func OfXML(text []byte) string {
	m := xmlDeclaration().FindSubmatch(text[:min(len(text), declared)])
	if m == nil || strings.HasPrefix(strings.ToLower(string(m[1])), "utf-16") {
		return "" // a declaration that was read byte by byte is not in UTF-16, whatever it says
	}
	return string(m[1])
}

// DeclareUTF8 has an XML document that was decoded say so: parsers refuse one that names another encoding.
func DeclareUTF8(text []byte) []byte {
	m := xmlDeclaration().FindSubmatchIndex(text[:min(len(text), declared)])
	if m == nil || strings.EqualFold(string(text[m[2]:m[3]]), UTF8) {
		return text
	}
	return append(append(append(make([]byte, 0, len(text)+5), text[:m[2]]...), "UTF-8"...), text[m[3]:]...)
}

// ofDocument is what an XML or HTML document that begins so says of its character set, "" where it says nothing.
func ofDocument(first []byte) string {
	if label := OfXML(first); label != "" {
		_, name := Lookup(label)
		return name
	}
	lower := bytes.ToLower(first)
	if !bytes.Contains(lower, []byte("<html")) && !bytes.Contains(lower, []byte("<meta")) {
		return ""
	}
	_, label, _ := charset.DetermineEncoding(first, "text/html")
	if label == latin { // it is also what is taken where a page says nothing
		return ""
	}
	_, name := Lookup(label)
	return name
}

// A documentReader has an XML document that it reads say that it is in UTF-8.
type documentReader struct {
	in    io.Reader
	begun bool
}

// Read implements io.Reader.
func (r *documentReader) Read(p []byte) (int, error) {
	if !r.begun {
		r.begun = true
		beginning := make([]byte, declared)
		n, _ := io.ReadFull(r.in, beginning) // what is wrong with it, the next reading says again
		r.in = io.MultiReader(bytes.NewReader(DeclareUTF8(beginning[:n])), r.in)
	}
	return r.in.Read(p)
}

package charsets

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// declared is the length in bytes of the beginning in which documents must declare their character set.
const declared = 512

// xmlDeclaration matches the encoding in an XML declaration.
var xmlDeclaration = lazy.Regexp(`^\s*<\?xml[^>]{0,200}?\sencoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._:-]{1,40})["']`)

// OfXML returns the character set that an XML document declares, or "" if there is none or the document cannot be in
// it.
func OfXML(text []byte) string {
	m := xmlDeclaration().FindSubmatch(text[:min(len(text), declared)])
	if m == nil || strings.HasPrefix(strings.ToLower(string(m[1])), "utf-16") {
		return "" // a declaration that is readable bytewise is not in UTF-16
	}
	return string(m[1])
}

// DeclareUTF8 changes the declared encoding of a decoded XML document to UTF-8, because parsers reject a declaration of
// another encoding. It returns other texts unchanged.
func DeclareUTF8(text []byte) []byte {
	m := xmlDeclaration().FindSubmatchIndex(text[:min(len(text), declared)])
	if m == nil || strings.EqualFold(string(text[m[2]:m[3]]), UTF8) {
		return text
	}
	return append(append(append(make([]byte, 0, len(text)+5), text[:m[2]]...), "UTF-8"...), text[m[3]:]...)
}

// ofDocument returns the character set that the beginning of an XML or HTML document declares, or "".
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
	if label == latin { // also the default for a page without a declaration
		return ""
	}
	_, name := Lookup(label)
	return name
}

// A documentReader changes the declaration of an XML document to UTF-8 as it is read.
type documentReader struct {
	in    io.Reader
	begun bool
}

// Read implements io.Reader.
func (r *documentReader) Read(p []byte) (int, error) {
	if !r.begun {
		r.begun = true
		beginning := make([]byte, declared)
		n, _ := io.ReadFull(r.in, beginning) // the next Read returns the error again
		r.in = io.MultiReader(bytes.NewReader(DeclareUTF8(beginning[:n])), r.in)
	}
	return r.in.Read(p)
}

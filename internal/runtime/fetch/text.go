package fetch

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// toText returns the body as UTF-8, bounded to most bytes, and the Content-Type that then applies. A byte order mark
// has precedence over the header, and the header over the declaration of an HTML or XML document. Text without any
// declaration is UTF-8 if it is valid or nearly so, otherwise windows-1252. In non-text only bytes that are
// invalid in UTF-8 are replaced.
func toText(body []byte, contentType string, most int) ([]byte, string, error) {
	media := mediaType(contentType)
	_, params, _ := mime.ParseMediaType(contentType)
	if !textual(media, body) {
		text, err := inUTF8(unicode.UTF8, body, most)
		return text, contentType, err
	}
	label := params["charset"]
	from, name, body := encodingOf(body, media, label)
	if from == nil {
		return nil, "", &Refusal{KindEncoding, "the answer's text has the character set " + wire.BoundText([]byte(name),
			40) + ", which cannot be decoded"}
	}
	text, err := inUTF8(from, body, most)
	if err != nil {
		return nil, "", err
	}
	if contentType != "" && (name != charsets.UTF8 || label != "" && !strings.EqualFold(label, charsets.UTF8)) {
		contentType = withUTF8(media, params)
	}
	return charsets.DeclareUTF8(text), contentType, nil
}

func mediaType(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		media = strings.TrimSpace(media)
	}
	return media
}

func inUTF8(from encoding.Encoding, body []byte, most int) ([]byte, error) {
	if from == unicode.UTF8 && utf8.Valid(body) {
		return body, nil
	}
	text, err := io.ReadAll(io.LimitReader(transform.NewReader(bytes.NewReader(body), from.NewDecoder()),
		int64(most)+1))
	if err != nil {
		return nil, &Refusal{KindEncoding, "the answer's text cannot be decoded"}
	}
	if len(text) > most {
		return nil, tooLarge(most)
	}
	return text, nil
}

// textual reports whether a body is text by its media type or, without one, by its beginning.
func textual(media string, body []byte) bool {
	if media == "" {
		return strings.HasPrefix(http.DetectContentType(body), "text/")
	}
	switch {
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "+xml"):
		return true
	}
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript",
		"application/ecmascript", "application/csv",
		"application/x-ndjson", "application/jsonl", "application/yaml", "application/x-yaml",
		"application/x-www-form-urlencoded", "application/graphql":
		return true
	}
	return false
}

// encodingOf returns the body's encoding and its name, and the body after a byte order mark. The encoding is nil if the
// declared name is unknown and the text is not UTF-8 either.
func encodingOf(body []byte, media, label string) (from encoding.Encoding, name string, rest []byte) {
	if name, rest := charsets.Marked(body); name != "" {
		from, name = charsets.Lookup(name)
		return from, name, rest
	}
	if name = charsets.Wide(body); name != "" {
		from, name = charsets.Lookup(name)
		return from, name, body
	}
	valid := utf8.Valid(body)
	if valid && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return unicode.UTF8, charsets.UTF8, body // RFC 8259, section 8.1
	}
	if label == "" {
		label = charsets.OfXML(body)
	}
	if label == "" && strings.Contains(media, "html") {
		// DetermineEncoding examines only the first bytes and falls back to windows-1252. A text that is UTF-8 is not a
		// coincidence.
		if _, name, _ := charset.DetermineEncoding(body, media); name != "windows-1252" {
			label = name
		}
	}
	if from, name = charsets.Lookup(label); from != nil {
		return from, name, body
	}
	switch {
	case valid, label == "" && charsets.MostlyUTF8(body):
		return unicode.UTF8, charsets.UTF8, body
	case label == "":
		from, name = charsets.Lookup("windows-1252")
		return from, name, body
	}
	return nil, label, body
}

func withUTF8(media string, params map[string]string) string {
	if params == nil {
		params = map[string]string{}
	}
	params["charset"] = "utf-8"
	if s := mime.FormatMediaType(media, params); s != "" {
		return s
	}
	return media + "; charset=utf-8"
}

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

// toText returns the body as UTF-8, of at most so many bytes, and the Content-Type that is true of it then. A byte order mark
// wins over what the header says, that over what an HTML or XML document says of itself; text of which nothing is said is
// UTF-8 if it can be, else windows-1252. In what is no text only the bytes are replaced that UTF-8 does not have.
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

// encodingOf finds the body's encoding and its name, and the body behind a byte order mark. The encoding is nil when a name is given
// that nobody knows and the text is not UTF-8 either.
func encodingOf(body []byte, media, label string) (from encoding.Encoding, name string, rest []byte) {
	if name, rest := charsets.Marked(body); name != "" {
		from, name = charsets.Lookup(name)
		return from, name, rest
	}
	valid := utf8.Valid(body)
	if valid && (media == "application/json" || strings.HasSuffix(media, "+json")) {
		return unicode.UTF8, charsets.UTF8, body // RFC 8259, section 8.1
	}
	if label == "" {
		label = charsets.OfXML(body)
	}
	if label == "" && strings.Contains(media, "html") {
		// It looks at the first bytes only, and falls back to windows-1252: text that is valid as a whole is no accident.
		if _, name, _ := charset.DetermineEncoding(body, media); name != "windows-1252" || !valid {
			label = name
		}
	}
	if from, name = charsets.Lookup(label); from != nil {
		return from, name, body
	}
	switch {
	case valid:
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

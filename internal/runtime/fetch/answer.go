package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/internal/runtime/charsets"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// smallBody is how many bytes of a body are read before the fetch waits for one of the places for large bodies.
const smallBody = 1 << 20

// A bodyReader reads bodies: it undoes the content coding, converts to UTF-8, and bounds the length at every stage.
type bodyReader struct {
	most  int          // most bytes, as sent and as text
	large func() error // called once if the body exceeds smallBody
}

// read returns the body as UTF-8. For binary data that is not valid UTF-8, whatever the header says of it, raw has the
// bytes as sent; otherwise it is nil. read updates the header fields that the conversion invalidates.
func (b bodyReader) read(answer *http.Response) (text, raw []byte, err error) {
	defer answer.Body.Close()
	sent := &sentBody{src: answer.Body, left: b.most + 1}
	plain, coded, err := decoded(sent, answer.Header["Content-Encoding"])
	if err != nil {
		return nil, nil, sent.explain(err)
	}
	body, err := b.readAll(plain)
	if err != nil {
		return nil, nil, sent.explain(err)
	}
	_, _ = io.CopyN(io.Discard, sent, 1) // brotli stops before the end of its source
	text, contentType, err := toText(body, answer.Header.Get("Content-Type"), b.most)
	if err != nil {
		return nil, nil, err
	}
	if !utf8.Valid(body) && (!textual(mediaType(contentType), body) || !charsets.Textual(body)) {
		raw = body
	}
	if coded {
		answer.Header.Del("Content-Encoding")
	}
	if coded || len(text) != len(body) || contentType != answer.Header.Get("Content-Type") {
		answer.Header.Del("Content-Length")
	}
	if contentType != "" {
		answer.Header.Set("Content-Type", contentType)
	}
	return text, raw, nil
}

// readAll reads to the end. Before it reads more than smallBody, it waits in large, so that few large bodies are in
// memory at once.
func (b bodyReader) readAll(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(min(smallBody, b.most)+1)))
	if err != nil || len(body) <= smallBody && len(body) <= b.most {
		return body, err
	}
	if b.most > smallBody {
		if err := b.large(); err != nil {
			return nil, err
		}
		rest, err := io.ReadAll(io.LimitReader(r, int64(b.most+1-len(body))))
		if body = append(body, rest...); err != nil {
			return nil, err
		}
	}
	if len(body) > b.most {
		return nil, tooLarge(b.most)
	}
	return body, nil
}

func tooLarge[N int | int64](most N) *Refusal {
	return &Refusal{KindTooLarge, fmt.Sprintf("the answer has more than %d bytes", most)}
}

// A sentBody bounds a body as sent: a stream of empty blocks could unpack to nothing forever.
type sentBody struct {
	src  io.Reader
	left int
	err  error // error of the source, other than io.EOF
}

func (s *sentBody) Read(p []byte) (int, error) {
	if s.left <= 0 {
		s.err = &Refusal{KindTooLarge, "the answer is too large as it was sent"}
		return 0, s.err
	}
	n, err := s.src.Read(p[:min(len(p), s.left)])
	s.left -= n
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// explain distinguishes an error of the connection from one of the content coding.
func (s *sentBody) explain(err error) error {
	var known *Refusal
	switch {
	case errors.As(err, &known):
		return known
	case s.err != nil && !errors.Is(s.err, io.ErrUnexpectedEOF):
		return s.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Refusal{KindIncomplete, "the answer was cut off before its end"}
	}
	return &Refusal{KindEncoding, "the answer cannot be unpacked: " + wire.BoundText([]byte(err.Error()), 200)}
}

func response(answer *http.Response, body, raw []byte) *recurgent.Response {
	return &recurgent.Response{Status: answer.StatusCode, Header: boundHeader(answer.Header),
		Body: wire.ValidText(body), Raw: raw}
}

// boundHeader converts a header to single values of valid UTF-8, and cuts off fields beyond the bounds.
func boundHeader(h http.Header) map[string]string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	sort.Strings(names) // the same fields are cut off at every call
	out := make(map[string]string, len(names))
	sum := 0
	for _, name := range names {
		value := wire.ValidText([]byte(strings.Join(h[name], ", ")))
		sum += len(name) + len(value)
		if len(out) == maxFetchHeaders || sum > maxFetchHeaderSum {
			break
		}
		out[wire.ValidText([]byte(name))] = value
	}
	return out
}

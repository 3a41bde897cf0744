package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// Begin creates a file and returns its writer, to which the body is written in pieces. name comes from the host and may
// be anything or "". mediaType can be parsed. If the fetch fails, the file is incomplete. If the program should see an
// error of Begin or of Write, it is a *recurgent.Failure.
type Begin func(name, mediaType string) (io.Writer, error)

// downloadPiece is how many bytes of a body are in memory at once.
const downloadPiece = 64 << 10

// Download is Do for a body of up to MaxFile bytes, which is written to a file: unpacked and without echoes of
// credentials, but otherwise unchanged. The request's timeout restarts whenever data arrives. The Response has no body.
// A status outside 2xx is a Failure: not_found for 404 and 410, otherwise fetch_failed.
func (c *Client) Download(ctx context.Context, who Caller, q recurgent.Request, into Begin) Answer {
	a := c.do(ctx, q, &hops{who: who, into: into})
	c.count(&a)
	if r := a.Response; r != nil && !isGood(r.Status) {
		f := &recurgent.Failure{Type: "fetch_failed", Message: "fetch: " + a.Note.URL + " answered " +
			strings.TrimSpace(strconv.Itoa(r.Status)+" "+http.StatusText(r.Status))}
		if r.Status == http.StatusNotFound || r.Status == http.StatusGone {
			f.Type = "not_found"
		}
		a.Response, a.Failure = nil, f
	}
	return a
}

func isGood(status int) bool { return status >= 200 && status < 300 }

// download writes the body of the answer to a file.
func (h *hops) download(ctx context.Context, answer *http.Response) (*recurgent.Response, error) {
	defer answer.Body.Close()
	most := h.client.opts.MaxFile
	if answer.ContentLength > most {
		return nil, tooLarge(most)
	}
	sent := &sentBody{src: answer.Body, left: int(most) + 1}
	plain, coded, err := decoded(sent, answer.Header["Content-Encoding"])
	if err != nil {
		return nil, sent.explain(err)
	}
	if coded {
		answer.Header.Del("Content-Encoding")
		answer.Header.Del("Content-Length")
	}
	to, err := h.into(h.mask(ctx, h.fileName(answer)), mediaTypeOf(answer))
	if err != nil {
		return nil, refused(err)
	}
	out := &fileBody{to: to, most: most}
	if err := h.copy(ctx, out, plain); err != nil {
		var broken *brokenBody
		if errors.As(err, &broken) {
			err = sent.explain(broken.error)
		}
		return nil, err
	}
	_, _ = io.CopyN(io.Discard, sent, 1) // brotli stops before the end of its source
	r := h.response(ctx, answer, nil, nil)
	h.note.describeFile(r, out)
	return r, nil
}

// copy copies the body and removes echoes of credentials.
func (h *hops) copy(ctx context.Context, out *fileBody, from io.Reader) error {
	var to io.Writer = out
	var masks *masker
	if len(h.used) > 0 {
		masks = &masker{to: out, mask: func(text []byte) ([]byte, error) { return h.masked(ctx, text) }}
		to = masks
	}
	piece := make([]byte, downloadPiece)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			h.goesOn()
			if _, err := to.Write(piece[:n]); err != nil {
				return refused(err)
			}
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			return &brokenBody{err}
		case masks != nil:
			return refused(masks.end())
		}
		return nil
	}
}

// A brokenBody is an error of reading the body.
type brokenBody struct{ error }

// masked returns text without echoes of credentials. The work counts towards the owner's share of heavy work.
func (h *hops) masked(ctx context.Context, text []byte) ([]byte, error) {
	if err := h.enter(len(text)); err != nil {
		return nil, err
	}
	defer h.leave(len(text))
	for _, c := range h.used {
		text = c.Mask(ctx, text)
	}
	return text, nil
}

// refused wraps err in an unkept error if it is a failure of the file's writer, otherwise it returns err.
func refused(err error) error {
	var f *recurgent.Failure
	if errors.As(err, &f) {
		return &unkept{f}
	}
	return err
}

// maxDescribed is how many bytes at the beginning of a file determine its shape.
const maxDescribed = 256 << 10

// A fileBody is a body that is written to a file.
type fileBody struct {
	to    io.Writer
	most  int64
	bytes int64
	head  []byte // the first maxDescribed bytes
}

func (b *fileBody) Write(p []byte) (int, error) {
	if b.bytes += int64(len(p)); b.bytes > b.most {
		return 0, tooLarge(b.most)
	}
	b.head = append(b.head, p[:min(len(p), maxDescribed-len(b.head))]...)
	return b.to.Write(p)
}

// describeFile fills in the properties of a body that is a file. The shape of a long file is that of its beginning, if
// that has one.
func (n *Note) describeFile(r *recurgent.Response, b *fileBody) {
	whole := int64(len(b.head)) == b.bytes
	text, contentType, err := toText(b.head, r.Header["Content-Type"], 4*maxDescribed)
	if err != nil {
		text, contentType = b.head, r.Header["Content-Type"]
	}
	n.describe(&recurgent.Response{Status: r.Status, Header: map[string]string{"Content-Type": contentType},
		Body: wire.ValidText(text), FetchedAt: r.FetchedAt})
	if n.Bytes = int(b.bytes); !whole && n.Shape == "text" {
		n.Shape = shapeEmpty // a cut-off document could have any shape
	}
}

// fileName returns the name of the body: from Content-Disposition (RFC 6266), or else the last part of the address,
// unless the address is a secret. It may be "".
func (h *hops) fileName(answer *http.Response) string {
	name := ""
	if _, params, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition")); err == nil {
		name = params["filename"]
	}
	if name == "" && !h.atAddress() {
		name = strings.TrimSuffix(answer.Request.URL.Path, "/")
	}
	if name = path.Base(strings.ReplaceAll(name, `\`, "/")); name == "." || name == "/" {
		return ""
	}
	return name
}

// mediaTypeOf returns the media type of the answer's body with its parameters, or application/octet-stream if it cannot
// be parsed.
func mediaTypeOf(answer *http.Response) string {
	const unknown, longest = "application/octet-stream", 127
	media, params, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || strings.Count(media, "/") != 1 {
		return unknown
	}
	for _, s := range []string{mime.FormatMediaType(media, params), media} {
		if s != "" && len(s) <= longest {
			return s
		}
	}
	return unknown
}

// maskWindow is how many bytes a masker scans at once. maskOverlap bounds the length of an echo that it finds across
// cuts.
const (
	maskWindow  = 512 << 10
	maskOverlap = 64 << 10
)

// A masker writes a body of any length without echoes of credentials. It scans one window at a time and cuts the body
// only where there is no echo. If a window has no such place, the fetch fails.
type masker struct {
	to   io.Writer
	mask func(text []byte) ([]byte, error) // its result may share memory with text
	buf  []byte                            // not yet written
}

func (m *masker) Write(p []byte) (int, error) {
	m.buf = append(m.buf, p...)
	if len(m.buf) < maskWindow {
		return len(p), nil
	}
	return len(p), m.pass()
}

// end writes the rest.
func (m *masker) end() error {
	out, err := m.mask(m.buf)
	if err == nil {
		_, err = m.to.Write(out)
	}
	m.buf = nil
	return err
}

// pass writes the part that no later byte can turn into an echo.
func (m *masker) pass() error {
	whole, err := m.mask(m.buf)
	if err != nil {
		return err
	}
	if bytes.Equal(whole, m.buf) {
		return m.cut(len(m.buf)-maskOverlap, whole[:len(m.buf)-maskOverlap])
	}
	for at := len(m.buf) - maskOverlap; at > 0; at -= maskOverlap {
		before, err := m.mask(m.buf[:at])
		if err != nil {
			return err
		}
		rest, err := m.mask(m.buf[at:])
		if err != nil {
			return err
		}
		if len(before)+len(rest) == len(whole) && bytes.HasPrefix(whole, before) && bytes.HasSuffix(whole, rest) {
			return m.cut(at, before)
		}
	}
	return &Refusal{KindConnection, "the answer repeats a connection's credential over and over"}
}

// cut writes out, the masked form of the bytes before at, and removes those from the buffer.
func (m *masker) cut(at int, out []byte) error {
	_, err := m.to.Write(out)
	m.buf = append(m.buf[:0], m.buf[at:]...)
	return err
}

package fetch

import (
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

// Begin begins a file of that name and media type: a name that the host gives, which may be anything or "", and a type that can be parsed. What is written to
// it is the body, in pieces. Where the fetch fails, it is not all of the body. The error, as that of Write, is a *recurgent.Failure where the program is to see it.
type Begin func(name, mediaType string) (io.Writer, error)

// downloadPiece is how much of a body is in memory at once.
const downloadPiece = 64 << 10

// Download is Do of a body of any length up to MaxFile, which goes to a file: unpacked, without echoes of credentials, and otherwise as it is. The time of a
// request begins anew whenever something comes. The Response has no body. A status that is not 2xx is a failure: not_found for 404 and 410, else fetch_failed.
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
	_, _ = io.CopyN(io.Discard, sent, 1) // brotli ends before its source does
	r := h.response(ctx, answer, nil, nil)
	h.note.describeFile(r, out)
	return r, nil
}

// copy copies the body, without echoes of credentials.
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

// A brokenBody is an error of reading.
type brokenBody struct{ error }

// masked is text without echoes of credentials, in the owner's share of heavy work.
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

// refused returns err as an unkept refusal if it is a failure of the writer of the file, else err itself.
func refused(err error) error {
	var f *recurgent.Failure
	if errors.As(err, &f) {
		return &unkept{f}
	}
	return err
}

// maxDescribed is how many bytes of a file its shape is found from.
const maxDescribed = 256 << 10

// A fileBody is a body that goes to a file.
type fileBody struct {
	to    io.Writer
	most  int64
	bytes int64
	head  []byte
}

func (b *fileBody) Write(p []byte) (int, error) {
	if b.bytes += int64(len(p)); b.bytes > b.most {
		return 0, tooLarge(b.most)
	}
	b.head = append(b.head, p[:min(len(p), maxDescribed-len(b.head))]...)
	return b.to.Write(p)
}

// describeFile fills in the properties of a body that is a file. The shape of a long one is that of its beginning, where that has one.
func (n *Note) describeFile(r *recurgent.Response, b *fileBody) {
	whole := int64(len(b.head)) == b.bytes
	text, contentType, err := toText(b.head, r.Header["Content-Type"], 4*maxDescribed)
	if err != nil {
		text, contentType = b.head, r.Header["Content-Type"]
	}
	n.describe(&recurgent.Response{Status: r.Status, Header: map[string]string{"Content-Type": contentType},
		Body: wire.ValidText(text), FetchedAt: r.FetchedAt})
	if n.Bytes = int(b.bytes); !whole && n.Shape == "text" {
		n.Shape = shapeEmpty // a document that does not end where its beginning is cut off may be of any
	}
}

// fileName is what the answer calls its body: by Content-Disposition (RFC 6266), else the last part of the address, unless that is a secret.
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

// mediaTypeOf is the media type of the answer's body, with its parameters, where it can be read.
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

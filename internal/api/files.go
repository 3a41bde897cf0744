package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Files are the operations on files that the interface needs from a runtime. An owner of "" means the files of all
// owners.
type Files interface {
	// Upload stores the body, and returns the file with its id, size and digest.
	Upload(ctx context.Context, f agent.File, body io.Reader) (agent.File, error)
	File(ctx context.Context, owner, id string) (agent.File, error)
	// OpenFile returns a reader that the caller must close.
	OpenFile(ctx context.Context, owner, id string) (*files.Reader, error)
	ListFiles(ctx context.Context, owner, after string, limit int) ([]agent.File, error)
	DeleteFile(ctx context.Context, owner, id, actor string) error
}

// maxUploads is how many uploads one owner may have in progress. A third more is reserved for others (fair.Share).
const maxUploads = 64

// fileView is a file as clients see it. Empty fields are null.
type fileView struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	MediaType string     `json:"media_type"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"`
	SessionID *string    `json:"session_id"`
	CallID    *string    `json:"call_id"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// viewFile converts a file for clients. Its owner is not shown.
func viewFile(f agent.File) fileView {
	v := fileView{ID: f.ID, Name: f.Name, MediaType: f.MediaType, Bytes: f.Bytes, SHA256: f.SHA256,
		CreatedAt: f.CreatedAt}
	if f.SessionID != "" {
		v.SessionID = &f.SessionID
	}
	if f.CallID != "" {
		v.CallID = &f.CallID
	}
	if !f.ExpiresAt.IsZero() {
		v.ExpiresAt = &f.ExpiresAt
	}
	return v
}

// curlsDefault is the media type that curl sends when it is given none. It carries no information about a file.
const curlsDefault = "application/x-www-form-urlencoded"

// postFile stores an upload. Its size is bounded by the runtime, not by MaxBody.
func (s *server) postFile(w *reply, r *http.Request) error {
	q := readQuery(r)
	f := agent.File{Owner: w.owner, Name: q.text("name"), SessionID: q.text("session_id"),
		MediaType: r.Header.Get("Content-Type"), Bytes: max(0, r.ContentLength)}
	if err := q.err(); err != nil {
		return err
	}
	if f.MediaType == curlsDefault {
		f.MediaType = ""
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return fault(codeMedia, "the body is encoded as "+strconv.Quote(coding),
			"send it as it is, without Content-Encoding")
	}
	owner := w.held.owner
	if !s.shares.uploads.Try(owner, 1) {
		return s.shares.full(reasonUploads)
	}
	defer s.shares.uploads.Leave(owner, 1)
	body := &patient{body: r.Body, control: http.NewResponseController(w.ResponseWriter), idle: s.o.Stall}
	f, err := w.run.Upload(r.Context(), f, body)
	if body.err != nil && !errors.Is(body.err, io.EOF) { // a read error is the cause of whatever Upload returned
		return uploadProblem(body.err)
	}
	if err != nil {
		return missing(err, "session of yours with that id")
	}
	w.Header().Set("Location", s.location("/v1/files/"+f.ID))
	return s.send(w, http.StatusCreated, viewFile(f))
}

// uploadProblem returns the problem of a body that could not be read to its end.
func uploadProblem(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fault(codeIdle, "", "")
	}
	return fault(codeMalformed, "the body ended before it was complete", "Send the whole file; nothing of it was kept.")
}

// patient reads a body that may take any total time, as long as each read returns within idle.
type patient struct {
	body    io.Reader
	control *http.ResponseController
	idle    time.Duration
	err     error // of the last read
}

// Read renews the deadline for each read, and remembers the error.
func (p *patient) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(time.Now().Add(p.idle)) // a connection without deadlines, as in tests, cannot stall
	n, err := p.body.Read(b)
	p.err = err
	return n, err
}

// listFiles lists the files of one owner, newest first. Those of another owner need the scope operate.
func (s *server) listFiles(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after, owner := q.limit(), q.cursor("file_"), q.text("owner")
	if err := q.err(); err != nil {
		return err
	}
	if owner != "" && owner != w.owner {
		if err := w.needs(access.Operate); err != nil {
			return err
		}
	}
	owner = cmp.Or(owner, w.owner)
	list, err := w.run.ListFiles(r.Context(), owner, after, limit+1)
	if err != nil {
		return err
	}
	views := make([]fileView, len(list))
	for i, f := range list {
		views[i] = viewFile(f)
	}
	return s.send(w, http.StatusOK, page(views, limit, func(v fileView) string { return v.ID }))
}

// fileID returns the id from the path, or the problem that there is no such file.
func fileID(r *http.Request) (string, error) {
	id, ok := idParam(r, "id")
	if !ok {
		return "", missing(store.ErrNotFound, "file of that id")
	}
	return id, nil
}

func (s *server) getFile(w *reply, r *http.Request) error {
	id, err := fileID(r)
	if err != nil {
		return err
	}
	f, err := w.run.File(r.Context(), w.only(), id)
	if err != nil {
		return missing(err, "file "+id)
	}
	return s.send(w, http.StatusOK, viewFile(f))
}

func (s *server) deleteFile(w *reply, r *http.Request) error {
	id, err := fileID(r)
	if err != nil {
		return err
	}
	if err := w.run.DeleteFile(r.Context(), w.only(), id, w.owner); err != nil {
		return missing(err, "file "+id)
	}
	return s.noContent(w)
}

// getFileContent sends the file, or ranges of it. The headers make browsers save it and never run it, whatever its
// type.
func (s *server) getFileContent(w *reply, r *http.Request) error {
	id, err := fileID(r)
	if err != nil {
		return err
	}
	f, err := w.run.OpenFile(r.Context(), w.only(), id)
	if err != nil {
		return missing(err, "file "+id)
	}
	defer func() { _ = f.Close() }() // closing a reader loses nothing
	// send nothing that a crash could still undo
	if err := w.run.Settled(); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", f.MediaType)
	h.Set("Content-Disposition", disposition(f.File))
	// a file may be HTML or SVG with scripts: no browser must run them with this origin
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("ETag", strconv.Quote(f.SHA256))
	if !strings.HasPrefix(r.Header.Get("Range"), "bytes=") {
		r.Header.Del("Range") // ignore other units (RFC 9110)
	}
	body, err := soundContent(f, r)
	if err != nil {
		clearContent(h)
		return err
	}
	content := &contentWriter{ResponseWriter: w}
	http.ServeContent(content, r, "", f.CreatedAt, body)
	if err := f.Err(); err != nil { // known before the last piece is sent
		s.log.Error().Err(err).Str("request_id", w.requestID).Msg("a download broke off")
		panic(http.ErrAbortHandler) // a regular end would make a truncated file look complete
	}
	if content.refused == "" {
		return nil
	}
	clearContent(h)
	return fault(content.refused, "", "")
}

// soundContent returns the content to send. A small file, and a file requested in ranges, is verified against
// its digest first. Any other file is verified while it is sent.
func soundContent(f *files.Reader, r *http.Request) (io.ReadSeeker, error) {
	const small = 64 << 10
	switch {
	case r.Method == http.MethodHead:
	case f.Bytes <= small:
		data, err := io.ReadAll(f)
		return bytes.NewReader(data), err
	case r.Header.Get("Range") != "":
		return f, f.Verify()
	}
	return f, nil
}

// clearContent removes the headers of a file that is not sent.
func clearContent(h http.Header) {
	for _, name := range []string{"Content-Disposition", "ETag", "Last-Modified"} {
		h.Del(name)
	}
}

// disposition returns the Content-Disposition that makes browsers save the file under its name, or its id if it has
// none.
func disposition(f agent.File) string {
	name := f.Name
	if name == "" {
		name = f.ID
	}
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}

// contentWriter suppresses the plain-text replies by which net/http rejects a range or a precondition, and records the
// reason.
type contentWriter struct {
	http.ResponseWriter
	refused string // code of the problem, or ""
}

// WriteHeader suppresses a rejection, which getFileContent turns into a problem.
func (w *contentWriter) WriteHeader(status int) {
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		w.refused = codeRange
	case http.StatusPreconditionFailed:
		w.refused = codePrecondition
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *contentWriter) Write(b []byte) (int, error) {
	if w.refused != "" {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// fileProblem returns the problem of a file or a session's files that exceed a limit.
func fileProblem(e *files.LimitError) *Problem {
	code := map[string]string{files.LimitFile: codeFileTooLarge, files.LimitSession: codeFileQuota}[e.Bound]
	p := fault(code, e.Error(), "")
	p.Meta = map[string]any{"limit": e.Limit}
	return p
}

// fullProblem returns the problem of a full share of storage.
func fullProblem(e *storage.FullError) *Problem {
	code := codeStorageFull
	if e.Of == store.KindFiles {
		code = codeFilesFull
	}
	p := fault(code, e.Error(), e.Hint())
	p.Meta = e.Details()
	return p
}

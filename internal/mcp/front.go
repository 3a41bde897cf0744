package mcp

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
)

// served are the methods that all versions answer. The SDK implements more, which the capabilities do not declare.
var served = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "tools/list": true, "tools/call": true,
	methodListen:     true,
	"resources/list": true, "resources/read": true, "resources/templates/list": true,
}

// serves reports whether that version of the protocol has the method. "" is an early version.
func serves(method, version string) bool {
	if forms, ok := taskMethods[method]; ok {
		return slices.Contains(forms, formOf(version))
	}
	return served[method]
}

// Handler serves streamable HTTP. It checks neither access nor Host and Origin: the caller must. Bodies are bounded by
// maxBody bytes. Every error is a JSON-RPC error, in a reply with a matching HTTP status. The handler may be used
// concurrently.
func (s *Server) Handler(maxBody int64) http.Handler {
	library := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.mcp },
		&sdk.StreamableHTTPOptions{
			Stateless: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody,
			PropagateRequestCancellation: true, Logger: quiet(s.log)})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			WriteError(w, http.StatusRequestEntityTooLarge, nil, "the message cannot be read: "+err.Error(), nil)
			return
		}
		m, fault := readMessage(data)
		if version := r.Header.Get(headerVersion); fault == nil && m.batch && version >= firstWithoutBatches {
			fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
				Message: "a request must hold one message: version " + version + " of the protocol has no batches"}
		}
		if fault == nil && m.batch {
			s.batch(library, w, r, data)
			return
		}
		s.one(library, w, r, m, fault)
	})
}

// one answers one message, or its fault.
func (s *Server) one(library http.Handler, w http.ResponseWriter, r *http.Request, m message, fault *jsonrpc.Error) {
	version := r.Header.Get(headerVersion)
	switch {
	case fault != nil:
		writeError(w, http.StatusBadRequest, m.id, fault)
	// a notification, or a response, though the server sends no requests
	case m.id == nil || m.method == "":
		if m.method == methodCancelled {
			s.requests.cancel(cancelKey(r, m.params))
		}
		w.WriteHeader(http.StatusAccepted)
	case !serves(m.method, version):
		status := http.StatusOK
		if version >= newestVersion {
			status = http.StatusNotFound // the newest version demands it
		}
		writeError(w, status, m.id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "there is no method " + m.method})
	default:
		s.pass(library, w, r, m)
	}
}

// pass lets the SDK answer a message, and makes the request available to handlers through its context.
func (s *Server) pass(library http.Handler, w http.ResponseWriter, r *http.Request, m message) {
	if r.Header.Get(headerSession) == "" && m.method == "initialize" {
		w.Header().Set(headerSession, newSession()) // identifies the client's requests in notifications/cancelled
	}
	out := &answerWriter{ResponseWriter: w, id: m.id}
	defer out.end()
	canceled, done := s.requests.begin(requestKey(r, m.id))
	defer done()
	ctx := context.WithValue(r.Context(), requestKeyOf{}, &request{canceled: canceled, out: out, params: m.params})
	r = r.WithContext(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(m.data)), int64(len(m.data))
	library.ServeHTTP(out, r)
}

// requestKeyOf is the context key of a *request.
type requestKeyOf struct{}

// A request holds facts of a message that the SDK does not pass to handlers.
type request struct {
	canceled <-chan struct{} // closed when the client cancels the request; nil if it cannot
	out      *answerWriter
	params   []byte
}

// why returns the cause of the context's end. A cancellation wins over a disconnect, since a client may disconnect
// right after it has canceled.
func (r *request) why(ctx context.Context) error {
	select {
	case <-r.canceled:
		return interrupt.ErrCanceled
	default:
		return context.Cause(ctx)
	}
}

// requestOf returns the request of the context, or an empty one that nobody cancels.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKeyOf{}).(*request); ok {
		return r
	}
	return &request{}
}

// An answerWriter writes the SDK's reply. It turns errors in plain text into JSON-RPC errors, and can keep an event
// stream alive.
type answerWriter struct {
	http.ResponseWriter
	id      []byte
	refused int // status of an error in plain text, whose text is collected; 0 if there is none
	text    strings.Builder

	mu    sync.Mutex // held while an event is written
	ended bool       // guarded by mu
}

// Unwrap lets http.ResponseController reach the connection.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader starts to collect the text of an error, instead of sending the header.
func (w *answerWriter) WriteHeader(status int) {
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if status >= http.StatusBadRequest && kind == "text/plain" {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write holds mu, since live may write concurrently.
func (w *answerWriter) Write(b []byte) (int, error) {
	if w.refused != 0 {
		return w.text.Write(b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseWriter.Write(b)
}

// FlushError is the method that http.ResponseController calls to flush.
func (w *answerWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

// flush flushes the connection. The caller holds mu.
func (w *answerWriter) flush() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// live sends a comment, which shows the client and any proxy that the stream is alive.
func (w *answerWriter) live() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if _, err := w.ResponseWriter.Write([]byte(": under way\n\n")); err == nil {
		_ = w.flush() // the SDK notices a broken connection itself
	}
}

// end stops live, and writes the collected error.
func (w *answerWriter) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	if w.refused != 0 {
		WriteError(w.ResponseWriter, w.refused, w.id, strings.TrimSpace(w.text.String()), nil)
	}
}

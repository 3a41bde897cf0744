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

// served are the methods that are answered in each version, and so those that the capabilities declare. The library knows more of them.
var served = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true, "tools/list": true, "tools/call": true,
	methodListen:     true,
	"resources/list": true, "resources/read": true, "resources/templates/list": true,
}

// serves reports whether the method is answered in that version of the protocol; "" is an early one.
func serves(method, version string) bool {
	if forms, ok := taskMethods[method]; ok {
		return slices.Contains(forms, formOf(version))
	}
	return served[method]
}

// Handler serves streamable HTTP. It checks neither access nor Host and Origin: its caller does. Bodies are bounded by
// maxBody bytes. Whatever goes wrong is a JSON-RPC error, in a reply of the HTTP status that says so.
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
		version := r.Header.Get(headerVersion)
		if fault == nil && m.batch && version >= firstWithoutBatches {
			fault = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
				Message: "a request must have one message: version " + version + " of the protocol has no batches"}
		}
		switch {
		case fault != nil:
			writeError(w, http.StatusBadRequest, m.id, fault)
		case !m.batch && (m.id == nil || m.method == ""): // a notification, or an answer to what nobody asked
			if m.method == methodCancelled {
				s.requests.cancel(cancelKey(r, m.params))
			}
			w.WriteHeader(http.StatusAccepted)
		case !m.batch && !serves(m.method, version):
			status := http.StatusOK
			if version >= newestVersion {
				status = http.StatusNotFound // as the protocol says
			}
			writeError(w, status, m.id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
				Message: "there is no method " + m.method})
		default:
			s.pass(library, w, r, m, data)
		}
	})
}

// pass has the library answer a message.
func (s *Server) pass(library http.Handler, w http.ResponseWriter, r *http.Request, m message, data []byte) {
	if r.Header.Get(headerSession) == "" && m.method == "initialize" {
		w.Header().Set(headerSession, newSession()) // by it notifications/cancelled names the requests of this client
	}
	out := &answerWriter{ResponseWriter: w, id: m.id}
	defer out.end()
	canceled, done := s.requests.begin(requestKey(r, m.id))
	defer done()
	ctx := context.WithValue(r.Context(), requestKeyOf{}, &request{canceled: canceled, out: out, params: m.params})
	r = r.WithContext(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	library.ServeHTTP(out, r)
}

type requestKeyOf struct{}

// A request is what the HTTP request knows of a message that the library does not pass on.
type request struct {
	canceled <-chan struct{} // closed when the client cancels it
	out      *answerWriter
	params   []byte
}

// why returns the cause of the end of the request's context: a client may leave at once after it has canceled the request.
func (r *request) why(ctx context.Context) error {
	select {
	case <-r.canceled:
		return interrupt.ErrCanceled
	default:
		return context.Cause(ctx)
	}
}

// requestOf returns the request of the context, one that nobody cancels where it did not come over HTTP.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKeyOf{}).(*request); ok {
		return r
	}
	return &request{}
}

// An answerWriter writes the library's reply. A refusal in plain text becomes a JSON-RPC error, and a stream of events can be kept alive.
type answerWriter struct {
	http.ResponseWriter
	id      []byte
	refused int // the status of a refusal, whose text is collected; 0 for none
	text    strings.Builder

	mu    sync.Mutex // one event at a time
	ended bool       // guarded by mu
}

// Unwrap is for http.ResponseController.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *answerWriter) WriteHeader(status int) {
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if status >= http.StatusBadRequest && kind == "text/plain" {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *answerWriter) Write(b []byte) (int, error) {
	if w.refused != 0 {
		return w.text.Write(b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseWriter.Write(b)
}

// FlushError is for http.ResponseController, too.
func (w *answerWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush()
}

func (w *answerWriter) flush() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// live sends a comment, by which the client, and what is between, sees that the stream lives.
func (w *answerWriter) live() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	if _, err := w.ResponseWriter.Write([]byte(": under way\n\n")); err == nil {
		_ = w.flush() // the library sees that nobody reads any more
	}
}

func (w *answerWriter) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	if w.refused != 0 {
		WriteError(w.ResponseWriter, w.refused, w.id, strings.TrimSpace(w.text.String()), nil)
	}
}

package api

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of replies.
const (
	largeReply = 64 << 10        // fits in socket buffers, so smaller replies are not counted
	replyTurn  = 5 * time.Second // longest wait for space
	writePiece = 64 << 10        // bytes of one write, which Options.Stall limits
)

// reply is the response, with the state of its request.
type reply struct {
	http.ResponseWriter
	stall  time.Duration // time limit of each piece that is written
	status int           // 0 until the header is written
	// released by route at the end, unless a call takes it over
	held      held
	requestID string           // the client's, or generated
	who       access.Principal // principal of the token
	as        access.Principal // who, in the namespace that the request acts in
	in        agent.Namespace  // namespace that the request acts in; "" for operations without a principal
	owner     string           // as.Owner(): "local" without tokens
	run       Runtime          // runtime of that namespace; nil for operations without a principal
	leave     func()           // releases run
	id        [1]string        // requestID, as header values
	length    [1]string        // of the body, as header values
	body      []byte           // of the request as received; kept only in a cluster, for forwarding
	left      *store.Receipt   // of the audit entry; nil if the operation writes none
	messageID json.RawMessage  // id of the MCP message; nil if it has none or was not read yet
}

// act sets the principal of the request.
func (w *reply) act(who access.Principal) { w.who, w.as, w.owner = who, who, who.Owner() }

// WriteHeader adds the id of the audit entry, if one was written.
func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	if w.left != nil {
		if id := w.left.AuditID(); id != "" {
			w.Header().Set(headerAuditID, id)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes in pieces with a deadline for each, so a slow client may take any total time as long as it reads.
func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for n := 0; ; {
		w.extend()
		m, err := w.ResponseWriter.Write(b[n:min(n+writePiece, len(b))])
		n += m
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// extend renews the write deadline. Call it before anything may write to the connection: the deadline of an earlier
// reply is still set on it.
func (w *reply) extend() {
	if c, ok := w.ResponseWriter.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = c.SetWriteDeadline(time.Now().Add(w.stall)) // a writer without deadlines, as in tests, cannot stall
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// drain reads the rest of a refused request's body. A client that writes the whole body before it reads would otherwise
// see a broken pipe instead of the problem. It reads at most four times MaxBody, and no longer than the server's limit
// for receiving a request. HTTP/2 clients, and those that wait for "100 Continue", need none of this.
func (s *server) drain(w *reply, r *http.Request) {
	leave, ok := s.shares.drainTurn(w.held.owner)
	if !ok { // too many at once: these clients see a closed connection
		return
	}
	defer leave()
	if most := 4 * s.o.MaxBody; r.ProtoMajor == 1 && r.Header["Expect"] == nil && r.ContentLength <= most {
		_, _ = io.CopyN(io.Discard, r.Body, most) // the problem is sent even if reading fails
	}
}

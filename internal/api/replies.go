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
	largeReply = 64 << 10 // what the sockets' own buffers take anyway; less is not counted
	replyTurn  = 5 * time.Second
	writePiece = 64 << 10
)

// reply is the response with what the wrapper found out about the request.
type reply struct {
	http.ResponseWriter
	stall     time.Duration // how long a client may take for a piece
	status    int           // 0 until the header is written
	held      held
	requestID string           // echoed or made
	who       access.Principal // of the token
	as        access.Principal // who, in the namespace in which the request acts
	in        agent.Namespace  // in which the request acts; "" where anyone may ask
	owner     string           // as.Owner(): "local" without tokens
	run       Runtime          // serves the namespace in which the request acts; nil where anyone may ask
	leave     func()           // gives run back
	owned     owned            // what run is for those who may not operate
	id        [1]string        // requestID, as a header's values
	length    [1]string        // of the body, as a header's values
	body      []byte           // of the request, as it came; kept where it may have to be forwarded
	left      *store.Receipt   // of the audit entry; nil where the operation leaves none
	messageID json.RawMessage  // of the message of MCP; nil where it has none, or before it was read
}

// act has the request act for that principal.
func (w *reply) act(who access.Principal) { w.who, w.as, w.owner = who, who, who.Owner() }

// use has the request act on what its principal may see of the runtime.
func (w *reply) use(run Runtime) {
	w.run = run
	if !w.who.Scopes.Has(access.Operate) {
		w.owned = owned{Shared: run, all: run, owner: w.owner}
		w.run = &w.owned
	}
}

// fileOwner is whose files the request may see: "" for everybody's.
func (w *reply) fileOwner() string {
	if w.who.Scopes.Has(access.Operate) {
		return ""
	}
	return w.owner
}

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

// Write writes in pieces, each with a deadline of its own: a slow client may take as long as it likes as long as it reads.
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

// extend gives the client another while to read. It must be called before whatever may write to the connection: a deadline
// of an earlier reply stays on it.
func (w *reply) extend() {
	if c, ok := w.ResponseWriter.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = c.SetWriteDeadline(time.Now().Add(w.stall)) // one that has none cannot be stuck either
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// drain reads what the client of a refused request is still sending: one that writes all of its body before it reads
// would see a broken pipe in the place of the problem. It reads at most four times what a body may have, and not beyond
// the time that a request has to arrive. Over HTTP/2, and before "100 Continue", nothing comes unasked.
func (s *server) drain(w *reply, r *http.Request) {
	leave, ok := s.shares.drainTurn(w.held.owner)
	if !ok { // a flood: its clients may see that the connection is closed
		return
	}
	defer leave()
	if most := 4 * s.o.MaxBody; r.ProtoMajor == 1 && r.Header["Expect"] == nil && r.ContentLength <= most {
		_, _ = io.CopyN(io.Discard, r.Body, most) // the problem is what counts
	}
}

package api

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/mcp"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Headers between replicas. principalHeader is trusted only on the replicas' own listener, whose clients present a
// certificate of the cluster; identify removes it from the requests of clients.
const (
	principalHeader = "Recurgent-Principal" // the principal, as authenticated by the replica that received the request
	replicaHeader   = "Recurgent-Replica"   // of replies: the replica that answered
)

// forwardPause is the pause before the second retry of a forwarded request. It doubles each time.
const forwardPause = 10 * time.Millisecond

// forwarded reports whether another replica forwarded the request.
func (s *server) forwarded(r *http.Request) bool {
	return s.o.Cluster != nil && cluster.Forwarded(r.Context())
}

// sentFor returns the principal of a forwarded request.
func sentFor(r *http.Request) (p access.Principal, err error) {
	values := r.Header[principalHeader]
	if len(values) != 1 {
		return p, fault(codeUnauthenticated, "the forwarded request lacks a principal", "")
	}
	data, err := base64.RawURLEncoding.DecodeString(values[0])
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	p.Rate = 0 // the replica that received the request has counted it
	return p, err
}

// internalHeader returns the headers that a forwarded request carries in addition to the client's.
func (w *reply) internalHeader() (http.Header, error) {
	data, err := json.Marshal(w.who)
	if err != nil {
		return nil, err
	}
	return http.Header{principalHeader: {base64.RawURLEncoding.EncodeToString(data)}, "X-Request-Id": {w.requestID}},
		nil
}

// serve runs the handler. If the handler's error means that another replica owns the session or runs the call, serve
// forwards the request. The handler has written nothing in that case. It retries for up to Options.Forward while the
// owner moves or cannot be reached.
func (s *server) serve(h handler, w *reply, r *http.Request, stream bool) error {
	h = earlierName(h)
	err := h(w, r)
	if err == nil || s.o.Cluster == nil {
		return err
	}
	// no pause at first: the owner may just have moved
	for began, pause := time.Now(), time.Duration(0); ; pause = max(forwardPause, 2*pause) {
		to, away := s.elsewhere(w, r, err)
		if !away {
			return err
		}
		if cluster.Forwarded(r.Context()) {
			cluster.Moved(w.Header())
			return fault(codeMoved, "", "")
		}
		// the check of the subject comes before the handler reads the body
		if w.body == nil {
			if _, err = s.keptBody(w, r); err != nil {
				return err
			}
		}
		err = s.forward(w, r, to, stream)
		if !errors.Is(err, cluster.ErrMoved) && !errors.Is(err, cluster.ErrUnreachable) ||
			time.Since(began) > s.o.Forward {
			return err
		}
		select {
		case <-time.After(pause):
		case <-r.Context().Done():
			return context.Cause(r.Context())
		}
		// the handler and the forwarding have consumed the body
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(w.body)), int64(len(w.body))
		if err = h(w, r); err == nil {
			return nil
		}
	}
}

// elsewhere reports whether the handler's error means that another replica must answer, and its address. The address is
// "" if this replica is leaving, and the forwarding replica must look again.
func (s *server) elsewhere(w *reply, r *http.Request, err error) (address string, yes bool) {
	var owned *cluster.ElsewhereError
	switch {
	case errors.As(err, &owned):
		return owned.Owner.Address, true
	case leaving(err) && cluster.Forwarded(r.Context()):
		return "", true
	case problemOf(err).Code != codeNotFound || cluster.Forwarded(r.Context()):
		return "", false
	}
	id, ok := idParam(r, "call_id")
	if !ok || !strings.HasPrefix(id, "call_") {
		return "", false
	}
	address = s.runsAt(w, r, id)
	return address, address != ""
}

// leaving reports whether the request was not started because this replica is shutting down. Another replica may answer
// it.
func leaving(err error) bool {
	return errors.Is(err, cluster.ErrLeaving) || errors.Is(err, runtime.ErrDraining) ||
		errors.Is(err, interrupt.ErrShutdown)
}

// runsAt asks the other replicas for the call, and returns the address of the one that runs it, or "".
func (s *server) runsAt(w *reply, r *http.Request, callID string) string {
	header, err := w.internalHeader()
	if err != nil {
		return ""
	}
	if name, given := r.Header[namespaceHeader]; given {
		header[namespaceHeader] = name
	}
	address, err := s.o.Cluster.Find(r.Context(), "/v1/calls/"+callID, header)
	if err != nil {
		s.log.Warn().Err(err).Str("request_id", w.requestID).Msg("the other replicas could not be asked for a call")
	}
	return address
}

// forward lets the replica at that address answer the request.
func (s *server) forward(w *reply, r *http.Request, to string, stream bool) error {
	header, err := w.internalHeader()
	if err != nil {
		return err
	}
	return s.o.Cluster.Forward(w, r, cluster.Request{Address: to, Header: header, Body: w.body, Stream: stream})
}

// callsHere makes sure that this replica owns the sessions of an MCP message, and runs the call of its task. The MCP
// handler writes its reply itself, so forwarding must be decided before. The error is a cluster.ElsewhereError if
// another replica must answer.
func (s *server) callsHere(w *reply, r *http.Request, message []byte) error {
	if s.o.Cluster == nil {
		return nil
	}
	ctx := r.Context()
	for _, id := range mcp.Sessions(message) {
		if !goodID(id) {
			continue
		}
		// the handler reports a missing session in its own protocol
		err := w.ownsSession(ctx, id)
		if err == nil {
			err = w.run.Here(ctx, id)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return s.taskHere(ctx, w, r, mcp.Task(message))
}

// taskHere returns a cluster.ElsewhereError if another replica runs the call of a task.
func (s *server) taskHere(ctx context.Context, w *reply, r *http.Request, callID string) error {
	if !goodID(callID) || cluster.Forwarded(ctx) {
		return nil
	}
	if _, err := w.run.CallOwner(ctx, callID); !errors.Is(err, store.ErrNotFound) {
		return nil // the handler reports other errors itself
	}
	if to := s.runsAt(w, r, callID); to != "" {
		return &cluster.ElsewhereError{Owner: store.Ownership{Address: to}}
	}
	return nil
}

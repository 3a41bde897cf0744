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

// Headers between replicas. Those of a client mean nothing: only what comes over the replicas' own listener, whose connections
// have a certificate of the cluster, is read.
const (
	principalHeader = "Recurgent-Principal" // who sends the request, as found by the replica that received it
	replicaHeader   = "Recurgent-Replica"   // of replies: who answered
)

// forwardPause is between two attempts to forward a request. It doubles each time.
const forwardPause = 10 * time.Millisecond

// forwarded reports whether another replica sent the request on for a client.
func (s *server) forwarded(r *http.Request) bool {
	return s.o.Cluster != nil && cluster.Forwarded(r.Context())
}

// sentFor returns the principal that a forwarded request is sent for.
func sentFor(r *http.Request) (p access.Principal, err error) {
	values := r.Header[principalHeader]
	if len(values) != 1 {
		return p, fault(codeUnauthenticated, "a forwarded request says not who sends it", "")
	}
	data, err := base64.RawURLEncoding.DecodeString(values[0])
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	p.Rate = 0 // the replica that received the request has counted it
	return p, err
}

// internalHeader is what another replica gets beside the client's headers.
func (w *reply) internalHeader() (http.Header, error) {
	data, err := json.Marshal(w.who)
	if err != nil {
		return nil, err
	}
	return http.Header{principalHeader: {base64.RawURLEncoding.EncodeToString(data)}, "X-Request-Id": {w.requestID}},
		nil
}

// serve runs the handler. What belongs to another replica is forwarded to it: calls of its sessions, and what is asked of calls
// that run there. Such a request has written nothing here.
func (s *server) serve(h handler, w *reply, r *http.Request, stream bool) error {
	h = earlierName(h)
	err := h(w, r)
	if err == nil || s.o.Cluster == nil {
		return err
	}
	// the first time the owner has just moved
	for began, pause := time.Now(), time.Duration(0); ; pause = max(forwardPause, 2*pause) {
		to, away := s.elsewhere(w, r, err)
		if !away {
			return err
		}
		if cluster.Forwarded(r.Context()) {
			cluster.Moved(w.Header())
			return fault(codeMoved, "", "")
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
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(w.body)), int64(len(w.body))
		if err = h(w, r); err == nil {
			return nil
		}
	}
}

// elsewhere reports whether the handler's error means that another replica is to answer, and where that is.
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

// leaving reports whether the request was not begun because this replica stops: another one may answer it.
func leaving(err error) bool {
	return errors.Is(err, cluster.ErrLeaving) || errors.Is(err, runtime.ErrDraining) ||
		errors.Is(err, interrupt.ErrShutdown)
}

// runsAt returns the address of the replica that runs the call, "" where none does.
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

// forward has the replica at that address answer the request.
func (s *server) forward(w *reply, r *http.Request, to string, stream bool) error {
	header, err := w.internalHeader()
	if err != nil {
		return err
	}
	return s.o.Cluster.Forward(w, r, cluster.Request{Address: to, Header: header, Body: w.body, Stream: stream})
}

// callsHere makes sure that this replica owns the session of a message of MCP, or runs the call that is its task: the handler could not forward it. The error
// says who does.
func (s *server) callsHere(w *reply, r *http.Request, message []byte) error {
	if s.o.Cluster == nil {
		return nil
	}
	ctx := r.Context()
	for _, id := range mcp.Sessions(message) {
		if !goodID(id) {
			continue
		}
		// what is not there the handler says in the way of its protocol
		if err := w.run.Here(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return s.taskHere(ctx, w, r, mcp.Task(message))
}

// taskHere makes sure that the call of a task does not run at another replica: the error says at which.
func (s *server) taskHere(ctx context.Context, w *reply, r *http.Request, callID string) error {
	if !goodID(callID) || cluster.Forwarded(ctx) {
		return nil
	}
	if _, err := w.run.CallOwner(ctx, callID); !errors.Is(err, store.ErrNotFound) {
		return nil // what else is wrong the handler says, too
	}
	if to := s.runsAt(w, r, callID); to != "" {
		return &cluster.ElsewhereError{Owner: store.Ownership{Address: to}}
	}
	return nil
}

package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// Calls are the operations on calls that the interface needs from a runtime.
type Calls interface {
	// Call runs a call and returns once its commit is durable.
	Call(ctx context.Context, q runtime.CallRequest) (runtime.CallResult, error)
	// Start runs a call asynchronously. done receives its result.
	Start(q runtime.CallRequest) (callID string, done <-chan runtime.CallResult, err error)
	// CallOwner returns the owner of a call's session.
	CallOwner(ctx context.Context, callID string) (string, error)
	CallView(ctx context.Context, callID string) (operator.CallView, error)
	ListCalls(ctx context.Context, q store.CallQuery) ([]agent.LogEntry, error)
	// Preview sets ValuePreview of entries, which the reader must be allowed to see.
	Preview(ctx context.Context, entries []agent.LogEntry) error
	// Cancel returns nil if the call has ended already.
	Cancel(ctx context.Context, callID, actor string) error
	Replay(ctx context.Context, callID string) (operator.ReplayReport, error)
	Why(ctx context.Context, callID string, asker why.Asker) (*why.Explanation, error)
}

const (
	maxTimeoutMs = 3_600_000 // one hour
	maxWait      = 600 * time.Second
)

// errNoResult is returned when an accepted call ended without a result, which is a fault of the daemon.
var errNoResult = errors.New("a call ended without a result")

// decodeCall fills q from a body in a single pass. It is the only decoder on the path of a warm call. The arguments
// alias data.
func decodeCall(data []byte, q *runtime.CallRequest) error {
	var f fields
	named := false
	err := strict.Members(data, func(name, v []byte) error {
		switch string(name) {
		case "method":
			named = !isNull(v)
			f.name("/method", "method", v, &q.Method)
		case "args":
			f.array("/args", v, &q.Args)
		case "kwargs":
			f.object("/kwargs", v, &q.Kwargs)
		case "role":
			f.name("/role", "role", v, &q.Role)
		case "contract":
			q.Contract = f.contract("/contract", v)
		case "history":
			f.raw(v, &q.History)
		case "timeout_ms":
			ms := 0
			f.integer("/timeout_ms", v, &ms, 1, maxTimeoutMs)
			q.Timeout = time.Duration(ms) * time.Millisecond
		default:
			f.unknown("", name, "method, args, kwargs, role, contract, history, timeout_ms")
		}
		return nil
	})
	if err != nil {
		return shapeProblem(err)
	}
	if len(f.errs) > 0 {
		return f.err()
	}
	if !named {
		return required("method", `say what is asked, such as {"method": "add", "args": [2, 3]}`)
	}
	return nil
}

// postCall runs a call in a session. The call's failure is an outcome in a reply of status 200.
func (s *server) postCall(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	q, data, err := s.readCall(w, r, id)
	if err != nil {
		return err
	}
	q.SessionID = id
	if err := decodeCall(data, &q); err != nil {
		return err
	}
	return s.answer(w, r, q)
}

// readCall reads the body and the headers of a request that makes a call. Idempotency keys are scoped by owner and
// scope.
func (s *server) readCall(w *reply, r *http.Request, scope string) (q runtime.CallRequest, data []byte, err error) {
	if data, err = s.readBody(w, r); err != nil {
		return q, nil, err
	}
	q = runtime.CallRequest{Owner: w.owner, Operates: w.who.Scopes.Has(access.Operate), TraceID: traceID(r)}
	if q.TraceID != "" {
		q.TraceParent = r.Header["Traceparent"][0]
	}
	if key, given := r.Header["Idempotency-Key"]; given {
		bare, err := idempotencyKey(key)
		if err != nil {
			return q, nil, err
		}
		q.IdempotencyKey = strings.Join([]string{w.owner, scope, bare}, "\n") // keys of different owners never collide
		// hash before decoding, which may replace surrogates in place
		sum := sha256.Sum256(data)
		q.BodyHash = hex.EncodeToString(sum[:])
	}
	return q, data, nil
}

// answer runs the call synchronously, or asynchronously if the Prefer header asks for it.
func (s *server) answer(w *reply, r *http.Request, q runtime.CallRequest) error {
	if prefer := r.Header["Prefer"]; len(prefer) > 0 {
		async, wait, err := parsePrefer(prefer)
		if err != nil {
			return err
		}
		if async {
			return s.startCall(w, r, q, wait)
		}
	}
	res, err := w.run.Call(r.Context(), q)
	if err != nil {
		return noSession(err, q.SessionID)
	}
	return s.sendResult(w, res)
}

// sendResult sends the result of a call. If the reply gets no turn, the problem names the call, whose outcome is
// stored.
func (s *server) sendResult(w *reply, res runtime.CallResult) error {
	h := w.Header()
	h["Recurgent-Outcome"] = s.fixed.failed
	if res.OK {
		h["Recurgent-Outcome"] = s.fixed.ok
	}
	s.warnOfSpend(w, res.Role, res.Method)
	if res.Replayed {
		h["Idempotent-Replayed"] = []string{"true"}
	}
	// end with a newline, as every other reply does, for people who read it on a terminal
	err := s.sendBytes(w, http.StatusOK, res.Body, s.fixed.newline)
	if err == nil {
		return nil
	}
	var p *Problem
	if errors.As(err, &p) {
		p.Detail = "the call has ended; its reply did not get a turn because too many large ones wait for their readers"
		p.Hint = "GET /v1/calls/" + res.CallID +
			" has its outcome; or send the request again with the same Idempotency-Key, where it had one."
		p.Meta = map[string]any{"call_id": res.CallID}
	}
	return err
}

// accepted is the reply to a call that is still running.
type accepted struct {
	CallID    string `json:"call_id"`
	SessionID string `json:"session_id"`
	Status    string `json:"status"`
}

// startCall starts a call that outlives the request, and waits up to wait for its end. After that the call takes over
// what the request holds, and the reply has status 202.
func (s *server) startCall(w *reply, r *http.Request, q runtime.CallRequest, wait time.Duration) error {
	callID, done, err := w.run.Start(q)
	if err != nil {
		return noSession(err, q.SessionID)
	}
	if res, over := await(r.Context(), done, wait); over {
		if len(res.Body) == 0 {
			return noSession(cmp.Or(res.Err, errNoResult), q.SessionID)
		}
		return s.sendResult(w, res)
	}
	kept := w.held
	// the call has taken the holdings over: the request must not release them
	w.held = held{owner: kept.owner}
	go func() { // ends with the call
		<-done
		kept.release()
	}()
	h := w.Header()
	h.Set("Location", s.location("/v1/calls/"+callID))
	h.Set("Preference-Applied", "respond-async")
	h.Set("Retry-After", "1")
	return s.sendNow(w, http.StatusAccepted, accepted{callID, q.SessionID, agent.StatusRunning})
}

// await waits up to wait for the end of a call. Without a wait, a new call counts as unfinished even if it has ended,
// so that the reply does not depend on timing; a replayed one (Idempotency-Key) counts as finished.
func await(ctx context.Context, done <-chan runtime.CallResult,
	wait time.Duration) (res runtime.CallResult, over bool) {
	if wait == 0 {
		select {
		case res = <-done:
			return res, res.Replayed
		default:
			return res, false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case res = <-done:
		return res, true
	case <-ctx.Done():
		return res, false
	}
}

// callID returns the call id from the path, or the problem that there is no such call.
func callID(r *http.Request) (string, error) {
	id, ok := idParam(r, "call_id")
	if !ok {
		return "", missing(store.ErrNotFound, "call of that id")
	}
	return id, nil
}

// noCall turns store.ErrNotFound into the problem that the call does not exist. Other errors pass unchanged.
func noCall(err error, id string) error { return missing(err, "call "+id) }

// getCall returns the log entry of a call, which may be running, and its outcome while it is kept.
func (s *server) getCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	v, err := w.callView(r.Context(), id)
	if err != nil {
		return noCall(err, id)
	}
	fillLists(&v.LogEntry)
	return s.send(w, http.StatusOK, v)
}

// replayCall runs a recorded call again on its recorded effects, and reports whether it ends in the same bytes.
func (s *server) replayCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	if err := s.decode(w, r, true, func(f *fields, name, _ []byte) { f.unknown("", name, "none") }); err != nil {
		return err
	}
	report, err := w.run.Replay(r.Context(), id)
	if err != nil {
		return noCall(err, id)
	}
	return s.send(w, http.StatusOK, report)
}

// cancelCall asks a running call to stop. It does not wait for its end.
func (s *server) cancelCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	if err := s.decode(w, r, true, func(f *fields, name, _ []byte) { f.unknown("", name, "none") }); err != nil {
		return err
	}
	if err := w.run.Cancel(r.Context(), id, w.owner); err != nil {
		return noCall(err, id)
	}
	return s.noContent(w)
}

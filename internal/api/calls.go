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
	"github.com/recurgentd/recurgentd/internal/api/strict"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	maxTimeoutMs = 3_600_000 // an hour
	maxWait      = 600 * time.Second
)

// errNoResult is our own fault: a call that was taken must end in a result.
var errNoResult = errors.New("a call ended without a result")

// decodeCall fills q from a body. It is the only decoder of a warm call: a single pass, and the arguments
// stay parts of the body.
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

// readCall reads the body of a request that makes a call, and what its headers say. Idempotency keys are apart by scope.
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
		q.IdempotencyKey = strings.Join([]string{w.owner, scope, bare}, "\n") // nobody meets another's key
		// before it is decoded, which may repair surrogates in place
		sum := sha256.Sum256(data)
		q.BodyHash = hex.EncodeToString(sum[:])
	}
	return q, data, nil
}

// answer makes the call in the way that the Prefer header asks for.
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
	// a line, as every other reply, for those who read it on a terminal
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

// accepted is the reply to a call that goes on without its client.
type accepted struct {
	CallID    string `json:"call_id"`
	SessionID string `json:"session_id"`
	Status    string `json:"status"`
}

// startCall starts a call that outlives the request, and waits for it as long as the client said.
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

// await waits for a call's end as long as its client said. Where it said nothing, a call that was begun is not over however quick it was, so that
// the reply does not depend on that; a call that an Idempotency-Key stands for is.
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

func callID(r *http.Request) (string, error) {
	id, ok := idParam(r, "call_id")
	if !ok {
		return "", missing(store.ErrNotFound, "call of that id")
	}
	return id, nil
}

func (s *server) getCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	v, err := w.run.CallView(r.Context(), id)
	if err != nil {
		return missing(err, "call "+id)
	}
	fillLists(&v.LogEntry)
	return s.send(w, http.StatusOK, v)
}

// replayCall runs a recorded call again on its recorded effects, and returns whether it ends in the same bytes.
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
		return missing(err, "call "+id)
	}
	return s.send(w, http.StatusOK, report)
}

func (s *server) cancelCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	if err := s.decode(w, r, true, func(f *fields, name, _ []byte) { f.unknown("", name, "none") }); err != nil {
		return err
	}
	if err := w.run.Cancel(r.Context(), id, w.owner); err != nil {
		return missing(err, "call "+id)
	}
	return s.noContent(w)
}

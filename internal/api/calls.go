package api

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
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
		p.Detail = "the call has ended, but its reply could not be sent: too many large replies wait to be read"
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

// listCalls lists calls, newest first. Running calls of other replicas are included if the query asks for running
// calls.
func (s *server) listCalls(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit := q.limit()
	c := store.CallQuery{
		Before: q.cursor("call_"), Limit: limit + 1,
		SessionID: q.text("session_id"), Role: q.name("role"), Method: q.name("method"),
		Status: q.oneOf("status", agent.StatusOK, agent.StatusError, agent.StatusRunning),
		Source: q.oneOf("source", agent.SourceGenerated, agent.SourcePersisted, agent.SourceRepaired,
			agent.SourceNone),
		ErrorType: q.text("error_type"), TraceID: q.text("trace_id"), ParentCallID: q.text("parent_call_id"),
		WeakSuccess: q.boolean("weak_success"), HistoryAccess: q.boolean("history_access"), Since: q.time("since"),
		Until: q.time("until"), Owner: w.only(), Scan: w.scan(),
	}
	previews := q.flag("previews")
	if err := q.err(); err != nil {
		return err
	}
	entries, err := w.run.ListCalls(r.Context(), c)
	if err != nil {
		return err
	}
	w.cutEntries(entries)
	entries, more, err := s.withCallsElsewhere(w, r, &c, entries)
	if err != nil {
		return err
	}
	for i := range entries {
		fillLists(&entries[i])
	}
	if previews {
		if err := w.run.Preview(r.Context(), entries[:min(limit, len(entries))]); err != nil {
			return err
		}
	}
	// another replica has further calls, so the list goes on even if this page is not full
	if more && len(entries) > 0 {
		c.Scan.Next = entries[min(limit, len(entries))-1].CallID
	}
	return s.send(w, http.StatusOK, page(entries, limit,
		func(e agent.LogEntry) string { return e.CallID }).goesOn(c.Scan.Next))
}

// fillLists replaces nil lists by empty ones, so that clients never see null.
func fillLists(e *agent.LogEntry) {
	if e.Args == nil {
		e.Args = []json.RawMessage{}
	}
	if len(e.Kwargs) == 0 {
		e.Kwargs = json.RawMessage("{}")
	}
	if e.AttemptFailures == nil {
		e.AttemptFailures = []agent.AttemptFailure{}
	}
	for _, l := range []*[]string{&e.HistoryQueryPatterns, &e.CapabilityPatterns, &e.WeakSuccessReasons} {
		if *l == nil {
			*l = []string{}
		}
	}
}

// parsePrefer reads the Prefer header (RFC 7240). As the RFC demands, it ignores unknown preferences. wait is at most
// maxWait.
func parsePrefer(values []string) (async bool, wait time.Duration, err error) {
	for _, v := range values {
		for p := range strings.SplitSeq(v, ",") {
			p, _, _ = strings.Cut(p, ";")
			name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "respond-async":
				async = true
			case "wait":
				n, convErr := strconv.Atoi(strings.Trim(strings.TrimSpace(value), `"`))
				if convErr != nil || n < 0 {
					return false, 0, fault(codeParameter, "Prefer: wait is not a number of seconds",
						"such as Prefer: respond-async, wait=10").in("header:Prefer",
						"wait must be a number of seconds")
				}
				wait = min(time.Duration(min(n, 1<<20))*time.Second, maxWait)
			}
		}
	}
	return async, wait, nil
}

// idempotencyKey returns the key of the header, bare or quoted: drafts of the header used both.
func idempotencyKey(values []string) (string, error) {
	bad := func(detail string) (string, error) {
		return "", fault(codeKeyInvalid, "the Idempotency-Key "+detail, "").in("header:Idempotency-Key", detail)
	}
	if len(values) != 1 {
		return bad("appears more than once")
	}
	key := values[0]
	if len(key) >= 2 && key[0] == '"' && key[len(key)-1] == '"' {
		key = key[1 : len(key)-1]
	}
	if key == "" || len(key) > 255 {
		return bad("must have 1 to 255 characters")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return bad("must be visible ASCII")
		}
	}
	return key, nil
}

// traceID returns the trace id of a W3C traceparent header, or "" if there is no valid one.
func traceID(r *http.Request) string {
	given := r.Header["Traceparent"]
	if len(given) != 1 {
		return ""
	}
	p := given[0]
	if len(p) < 55 || p[2] != '-' || p[35] != '-' || p[52] != '-' || p[:2] == "ff" || p[:2] == "00" && len(p) != 55 ||
		len(p) > 55 && p[55] != '-' {
		return ""
	}
	if !lowerHex(p[:2]) || !lowerHex(p[3:35]) || !lowerHex(p[36:52]) || !lowerHex(p[53:55]) ||
		p[3:35] == "00000000000000000000000000000000" || p[36:52] == "0000000000000000" {
		return ""
	}
	return p[3:35]
}

// lowerHex reports whether s consists of lower-case hexadecimal digits, which the standard demands.
func lowerHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// unansweredHeader lists the replicas that did not report their running calls.
const unansweredHeader = "Recurgent-Unanswered"

// elsewhere is the result of asking the other replicas for their running calls.
type elsewhere struct {
	calls  []agent.LogEntry
	more   bool     // some replica has more calls than it returned
	silent []string // replicas that did not answer
}

// callsElsewhere asks the other replicas for uri, as the client's principal, and returns the calls they run. A
// replica that does not answer is listed in silent and logged; it is not an error.
func (s *server) callsElsewhere(w *reply, r *http.Request, uri string) (out elsewhere, err error) {
	header, err := w.internalHeader()
	if err != nil {
		return out, err
	}
	// the other replicas must act in the same namespace
	if name, given := r.Header[namespaceHeader]; given {
		header[namespaceHeader] = name
	}
	answers, err := s.o.Cluster.Ask(r.Context(), uri, header)
	if err != nil {
		return out, err
	}
	for _, a := range answers {
		var theirs list[agent.LogEntry]
		if a.Err == nil {
			a.Err = json.Unmarshal(a.Body, &theirs)
		}
		if a.Err != nil {
			s.log.Warn().Err(a.Err).Str("replica", a.Replica).Str("request_id",
				w.requestID).Msg("another replica did not say what runs there")
			out.silent = append(out.silent, a.Replica)
			continue
		}
		out.calls, out.more = append(out.calls, theirs.Data...), out.more || theirs.NextCursor != nil
	}
	return out, nil
}

// withCallsElsewhere merges the running calls of other replicas into here, newest first. It changes nothing unless
// the query asks for running calls. more reports whether a replica has more calls than it returned.
func (s *server) withCallsElsewhere(w *reply, r *http.Request, q *store.CallQuery,
	here []agent.LogEntry) (entries []agent.LogEntry, more bool, err error) {
	if s.o.Cluster == nil || s.forwarded(r) || q.Status != agent.StatusRunning {
		return here, false, nil
	}
	there, err := s.callsElsewhere(w, r, r.URL.RequestURI())
	if err != nil {
		return nil, false, err
	}
	if len(there.silent) > 0 {
		w.Header().Set(unansweredHeader, strings.Join(there.silent, ", "))
	}
	here = append(here, there.calls...)
	slices.SortFunc(here, func(a, b agent.LogEntry) int { return strings.Compare(b.CallID, a.CallID) })
	// the two reads are not simultaneous, so a call may be in both lists
	return slices.CompactFunc(here, func(a, b agent.LogEntry) bool { return a.CallID == b.CallID }), there.more, nil
}

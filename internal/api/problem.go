package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api/strict"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Codes of problems: stable, and documented by problemKinds.
const (
	codeMalformed       = "malformed_json"
	codeParameter       = "invalid_parameter"
	codeKeyInvalid      = "invalid_idempotency_key"
	codeUnauthenticated = "unauthenticated"
	codeCrossOrigin     = "cross_origin"
	codeNotFound        = "not_found"
	codeNoRoute         = "no_such_route"
	codeMethod          = "method_not_allowed"
	codeExists          = "already_exists"
	codeConflict        = "conflict"
	codeCannotUndo      = "cannot_undo"
	codeKeyInUse        = "idempotency_key_in_use"
	codeGone            = "gone"
	codePrecondition    = "precondition_failed"
	codeBodyTooLarge    = "body_too_large"
	codeTooLarge        = "too_large"
	codeMedia           = "unsupported_media_type"
	codeHost            = "host_not_allowed"
	codeInvalid         = "validation_failed"
	codeName            = "invalid_name"
	codeContract        = "invalid_contract"
	codeContext         = "invalid_context"
	codePolicy          = "invalid_policy"
	codeProgram         = "invalid_code"
	codeHistoryValue    = "invalid_history_value"
	codeHistoryElement  = "invalid_history_element"
	codeTimeout         = "invalid_timeout"
	codeSetter          = "invalid_setter"
	codeGeneration      = "invalid_generation"
	codeKeyReused       = "idempotency_key_reused"
	codeInput           = "invalid_input"
	codeNoProgram       = "no_program"
	codeMasked          = "masked_input"
	codeVerdict         = "invalid_verdict"
	codeExample         = "invalid_example"
	codeExampleConflict = "example_conflict"
	codeQueueFull       = "queue_full"
	codeInternal        = "internal"
	codeBodiesFull      = "bodies_full"
	codeRepliesFull     = "replies_full"
	codeDraining        = "draining"
	codeReadOnly        = "read_only"
	codeNotReady        = "not_ready"
	codeProvider        = "provider"
	codeUnfitting       = "unfitting_reply"
)

// problemKind is one row of the table of problems.
type problemKind struct {
	code   string
	status int
	title  string
	hint   string // what to do, where the problem itself does not know better
	retry  string // Retry-After in seconds, or ""
}

// problemKinds is the one table of problems: what clients are told, what /problems/{code} shows, what metrics count.
func problemKinds() []problemKind {
	return []problemKind{
		{codeMalformed, 400, "The body cannot be read", "Send exactly one JSON value in UTF-8, with no name twice in an object.", ""},
		{codeParameter, 400, "A query parameter or header is not valid", "Compare the request with /openapi.yaml.", ""},
		{codeKeyInvalid, 400, "The Idempotency-Key is not valid", "Send 1 to 255 visible ASCII characters; a UUID does well.", ""},
		{codeUnauthenticated, 401, "No known access token", "Send the header Authorization: Bearer <token> with a token of the daemon's token file.", ""},
		{codeCrossOrigin, 403, "Requests from other origins are refused", "Web pages of other sites may not change anything here; ask from a program or from the same origin.", ""},
		{codeNotFound, 404, "There is no such thing", "List what there is with the path without the last part.", ""},
		{codeNoRoute, 404, "There is no such path", "GET /openapi.yaml lists all paths; names in a path are percent-encoded.", ""},
		{codeMethod, 405, "The path does not have this method", "The Allow header lists the methods of the path.", ""},
		{codeExists, 409, "It exists already", "Read it, and change it with If-Match, or choose another name.", ""},
		{codeConflict, 409, "It was changed meanwhile", "Read it again, decide anew, and send the request again.", ""},
		{codeCannotUndo, 409, "The act cannot be undone", "GET /v1/maintenance/audit shows what was done since; undo the later acts first.", ""},
		{codeKeyInUse, 409, "A call with this Idempotency-Key is still running", "Wait for it, or ask for it again later with the same key.", "1"},
		{codeGone, 410, "It was deleted or has expired", "Nothing can bring it back over this interface.", ""},
		{codePrecondition, 412, "The revision is another one", "Read it again: the ETag header has its revision.", ""},
		{codeBodyTooLarge, 413, "The body is too large", "Send less, or split it over several calls.", ""},
		{codeTooLarge, 413, "A value is too large", "Keep less in it; docs/configuration.md lists the limits.", ""},
		{codeMedia, 415, "The body is not JSON", "Send the header Content-Type: application/json.", ""},
		{codeHost, 421, "The daemon answers for this machine only", "Speak to localhost or a loopback address, or configure access tokens.", ""},
		{codeInvalid, 422, "The body is not valid", "Each entry of errors points at what is wrong; /openapi.yaml describes the whole.", ""},
		{codeName, 422, "A name cannot be a role or a method", "Names have 1 to 200 characters of valid UTF-8, no slashes, no control or invisible characters, and are not . or ..", ""},
		{codeContract, 422, "The contract cannot be used", "The deliverable is a JSON Schema or has type, required, min_items and constraints; see docs.", ""},
		{codeContext, 422, "The context cannot be used", "A context is a JSON object within the size limit.", ""},
		{codePolicy, 422, "The policy cannot be used", "GET /v1/policy lists the names and values in force; nothing of the patch was applied.", ""},
		{codeProgram, 422, "The program was refused", "The detail says what the gate found; nothing was kept.", ""},
		{codeHistoryValue, 422, "The history is not valid", `A history is {"messages": [...]} or null.`, ""},
		{codeHistoryElement, 422, "An element of the history is not valid", "Each element is an object with all input and output fields of the signature.", ""},
		{codeTimeout, 422, "The timeout cannot be used", "Leave timeout_ms out for the default.", ""},
		{codeSetter, 422, "A setter takes exactly one argument", `Such as {"method": "name=", "args": ["the value"]}.`, ""},
		{codeGeneration, 422, "There is no such generation to go to", "GET .../generations lists the kept ones.", ""},
		{codeKeyReused, 422, "The Idempotency-Key was used with another request", "Use a new key for a new request.", ""},
		{codeQueueFull, 429, "Too many calls are waiting", "Try again later, with fewer calls at once.", "1"},
		{codeInput, 422, "An input does not fit the signature", "inputs holds a value for each input field of the signature, and no others.", ""},
		{codeNoProgram, 422, "No program answered that call", "Setters and predictions run no program; judge a call that a program answered.", ""},
		{codeMasked, 422, "The call had secrets among its arguments", "Masked arguments are not kept; put an example with arguments of your own.", ""},
		{codeVerdict, 422, "The verdict cannot be used", `Such as {"verdict": "wrong", "expected": 700, "note": "70 percent, not 60"}.`, ""},
		{codeExample, 422, "An example is not valid", `Such as {"args": [1000], "expect": {"value": 700}}.`, ""},
		{codeExampleConflict, 422, "Two examples have the same input", "Keep one of them.", ""},
		{codeInternal, 500, "The daemon failed", "The daemon's log has the reason under the request id.", ""},
		{codeProvider, 502, "The model could not be asked", "Nothing was kept; try again later.", "5"},
		{codeUnfitting, 502, "The model's replies do not fit the signature", "It was asked twice; say more in the instructions, or try another adapter or model.", ""},
		{codeBodiesFull, 503, "Too many large requests are under way", "Try again later, with fewer large requests at once.", "1"},
		{codeRepliesFull, 503, "Too many large replies wait for their readers", "Read replies as they come; try again later.", "1"},
		{codeDraining, 503, "The daemon is shutting down", "Try again once it has started anew.", "5"},
		{codeReadOnly, 503, "The daemon cannot write now", "Its disk is full or has failed; reading still works.", "10"},
		{codeNotReady, 503, "The daemon is not ready", "Try again soon; /readyz turns 200 when it is.", "1"},
	}
}

func kindOf(code string) (problemKind, bool) {
	kinds := problemKinds()
	i := slices.IndexFunc(kinds, func(k problemKind) bool { return k.code == code })
	if i < 0 {
		return problemKind{}, false
	}
	return kinds[i], true
}

// FieldError is one entry of a problem's errors: a place in the body (JSON pointer), or in "path:", "query:" and
// "header:" the name of a parameter.
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"`
}

// Problem is a problem detail (RFC 9457).
type Problem struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	Instance  string         `json:"instance"`
	Code      string         `json:"code"`
	Hint      string         `json:"hint"`
	RequestID string         `json:"request_id"`
	Errors    []FieldError   `json:"errors,omitempty"`
	Meta      map[string]any `json:"-"` // more members, beside the ones above

	retry string
	cause error // for the log
}

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }
func (p *Problem) Unwrap() error { return p.cause }

type plainProblem Problem

// MarshalJSON writes the members of Meta beside the problem's own, which win.
func (p *Problem) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal((*plainProblem)(p))
	if err != nil || len(p.Meta) == 0 {
		return b, err
	}
	all := map[string]json.RawMessage{}
	for k, v := range p.Meta {
		if all[k], err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("member %s of a problem: %w", k, err)
		}
	}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// fault makes a problem of a code of the table. An empty detail or hint is the table's.
func fault(code, detail, hint string) *Problem {
	k, _ := kindOf(code)
	p := &Problem{Type: "/problems/" + code, Title: k.title, Status: k.status, Detail: detail, Code: code, Hint: hint, retry: k.retry}
	if p.Detail == "" {
		p.Detail = k.title
	}
	if p.Hint == "" {
		p.Hint = k.hint
	}
	return p
}

// in adds an entry to the problem's errors.
func (p *Problem) in(pointer, detail string) *Problem {
	p.Errors = append(p.Errors, FieldError{Pointer: pointer, Detail: detail})
	return p
}

// missing turns a store's "not found" into one that says what was not found; other errors stay as they are.
func missing(err error, what string) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return fault(codeNotFound, "there is no "+what, "")
}

// problemOf is the one place that maps errors to problems. What is not listed is our own fault: its text stays in the log.
func problemOf(err error) *Problem {
	var p *Problem
	var bad *strict.Error
	var input *agent.InputError
	var name *agent.NameError
	var policy *agent.PolicyError
	var unanswered *predict.Failure
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &bad):
		return fault(codeMalformed, bad.Error(), "").in(bad.Pointer, bad.Reason)
	case errors.As(err, &input):
		return inputProblem(input)
	case errors.As(err, &unanswered):
		p := fault(unanswered.Code, unanswered.Detail, "")
		p.Meta = map[string]any{"usage": unanswered.Usage}
		return p
	case errors.As(err, &name):
		return fault(codeName, "the "+name.Error(), "").in("/"+name.Field, name.Reason)
	case errors.As(err, &policy):
		return fault(codePolicy, strings.TrimSpace(policy.Field+" "+policy.Reason), "").in(policy.Field, policy.Reason)
	}
	for _, k := range []struct {
		err  error
		code string
	}{
		{runtime.ErrDraining, codeDraining}, {runtime.ErrQueueFull, codeQueueFull}, {runtime.ErrKeyReused, codeKeyReused}, {runtime.ErrKeyInUse, codeKeyInUse},
		{store.ErrNotFound, codeNotFound}, {store.ErrExists, codeExists}, {store.ErrConflict, codeConflict}, {store.ErrInUse, codeConflict},
		{store.ErrReadOnly, codeReadOnly}, {store.ErrGone, codeGone},
	} {
		if errors.Is(err, k.err) {
			p := fault(k.code, "", "")
			p.cause = err
			return p
		}
	}
	p = fault(codeInternal, "", "")
	p.cause = err
	return p
}

func inputProblem(e *agent.InputError) *Problem {
	code := e.Code
	if _, known := kindOf(code); !known {
		code = codeInvalid
	}
	p := fault(code, e.Detail, e.Hint)
	p.Meta = e.Meta
	return p.in(e.Pointer, e.Detail)
}

// fail answers with the problem of err.
func (s *server) fail(w *reply, r *http.Request, err error) {
	if clientGone(r, err) {
		w.status = statusClientGone // nobody listens any more
		return
	}
	s.drain(r)
	p := problemOf(err)
	if p.Status >= 500 && p.Code != codeRepliesFull && p.Code != codeBodiesFull {
		s.log.Error().Err(err).Str("request_id", w.requestID).Str("code", p.Code).Msg("request failed")
	}
	s.write(w, r, p)
}

func (s *server) write(w *reply, r *http.Request, p *Problem) {
	p.Instance, p.RequestID = r.URL.EscapedPath(), w.requestID
	body, err := json.Marshal(p)
	if err != nil {
		p.Meta = nil // what the runtime told beside the problem cannot be encoded; the problem itself always can
		body, _ = json.Marshal(p)
	}
	if c := s.problems[p.Code]; c != nil {
		c.Inc()
	}
	if p.retry != "" {
		w.Header().Set("Retry-After", p.retry)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone cannot be told
}

func (s *server) noRoute(w *reply, r *http.Request) error {
	return fault(codeNoRoute, "there is nothing at "+r.URL.EscapedPath(), "")
}

// problemPage shows what a problem's type stands for.
func (s *server) problemPage(w *reply, r *http.Request) error {
	code := param(r, "code")
	k, ok := kindOf(code)
	if !ok {
		return fault(codeNotFound, "there is no problem of that code", "")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	_, _ = fmt.Fprintf(w, "%s\n\n%s (status %d).\n\nWhat to do: %s\n", k.code, k.title, k.status, k.hint)
	return nil
}

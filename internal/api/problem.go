package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cluster"
	"github.com/recurgentd/recurgentd/internal/mcp"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/predict"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// FieldError is one entry of a problem's errors. Pointer is a JSON pointer into the body, or the name of a parameter
// after "path:", "query:" or "header:".
type FieldError struct {
	Pointer string `json:"pointer"`
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"`
}

// Problem is a problem detail (RFC 9457). It is an error, so handlers return it.
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
	Meta      map[string]any `json:"-"` // further members of the JSON object

	// value of Retry-After in seconds, or ""
	retry string
	cause error // the error behind it, for the log only
}

// Error returns the code and the detail, for the log.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Unwrap returns the underlying error, which clients never see.
func (p *Problem) Unwrap() error { return p.cause }

// plainProblem is Problem without MarshalJSON.
type plainProblem Problem

// MarshalJSON adds the members of Meta. A member of the problem itself wins over one of Meta.
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

// fault returns the problem of a code. An empty detail or hint is replaced by the table's.
func fault(code, detail, hint string) *Problem {
	k, _ := kindOf(code)
	p := &Problem{Type: "/problems/" + code, Title: k.title, Status: k.status, Detail: detail, Code: code, Hint: hint,
		retry: k.retry}
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

// missing turns store.ErrNotFound into a problem that names the missing thing. Other errors pass unchanged.
func missing(err error, what string) error {
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return fault(codeNotFound, "there is no "+what, "")
}

// problemOf maps an error to a problem; no other function does. An unlisted error is an internal one, whose text only
// the log gets.
func problemOf(err error) *Problem {
	var p *Problem
	var bad *strict.Error
	var input *agent.InputError
	var name *agent.NameError
	var policy *agent.PolicyError
	var unanswered *predict.Failure
	var over *files.LimitError
	var full *storage.FullError
	var forbidden *access.ForbiddenError
	var unchecked *access.UnavailableError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &bad):
		return fault(codeMalformed, bad.Error(), "").in(bad.Pointer, bad.Reason)
	case errors.As(err, &input):
		return inputProblem(input)
	case errors.As(err, &forbidden):
		return fault(codeForbidden, forbidden.Reason, "")
	case errors.As(err, &unchecked):
		p := fault(codeIssuer, unchecked.Reason, "")
		p.retry = strconv.FormatInt(int64(math.Ceil(unchecked.RetryAfter.Seconds())), 10)
		return p
	case errors.As(err, &over):
		return fileProblem(over)
	case errors.As(err, &full):
		return fullProblem(full)
	case errors.As(err, &unanswered):
		p := fault(unanswered.Code, unanswered.Detail, "")
		p.Meta = map[string]any{"usage": unanswered.Usage}
		if unanswered.Over != nil {
			return overCap(p, unanswered.Over)
		}
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
		{runtime.ErrDraining, codeDraining}, {interrupt.ErrShutdown, codeDraining},
		{turns.ErrFull, codeQueueFull}, {runtime.ErrKeyReused, codeKeyReused},
		{runtime.ErrKeyInUse, codeKeyInUse},
		{store.ErrNotFound, codeNotFound}, {store.ErrExists, codeExists}, {store.ErrConflict, codeConflict},
		{store.ErrInUse, codeConflict},
		{store.ErrAway, codeAway}, {store.ErrReadOnly, codeReadOnly}, {store.ErrGone, codeGone},
		{store.ErrTooMany, codeTooMany}, {operator.ErrNoSeal, codeSecrets}, {store.ErrDamaged, codeFileDamaged},
		{store.ErrFenced, codeMoved}, {cluster.ErrMoved, codeMoved}, {cluster.ErrUnreachable, codeUnreachable},
		{cluster.ErrLost, codeLost}, {cluster.ErrLeaving, codeDraining}, {cluster.ErrCutOff, codeNotReady},
	} {
		if errors.Is(err, k.err) {
			p := fault(k.code, "", "")
			// the text of err stays in the log: it may contain paths or addresses
			p.cause = err
			return p
		}
	}
	p = fault(codeInternal, "", "")
	p.cause = err
	return p
}

// inputProblem returns the problem of an input error, whose code is the problem's if the table has it.
func inputProblem(e *agent.InputError) *Problem {
	code := e.Code
	if _, known := kindOf(code); !known {
		code = codeInvalid
	}
	p := fault(code, e.Detail, e.Hint)
	p.Meta = e.Meta
	return p.in(e.Pointer, e.Detail)
}

// fail answers with the problem of err. If the client has gone, it writes nothing.
func (s *server) fail(w *reply, r *http.Request, err error) {
	if clientGone(r, err) {
		w.status = statusClientGone // there is no one to answer
		return
	}
	s.drain(w, r)
	p := problemOf(err)
	// overload, and an issuer that is down, are not faults of the daemon and would flood its log
	if p.Status >= 500 && p.Code != codeRepliesFull && p.Code != codeBodiesFull && p.Code != codeIssuer {
		s.log.Error().Err(err).Str("request_id", w.requestID).Str("code", p.Code).Msg("request failed")
	}
	s.write(w, r, p)
}

// mcpPath is the path of the MCP endpoint.
const mcpPath = "/mcp"

// write sends a problem and counts it. Clients of MCP get it as a JSON-RPC error.
func (s *server) write(w *reply, r *http.Request, p *Problem) {
	p.Instance, p.RequestID = r.URL.EscapedPath(), w.requestID
	p.shorten()
	body, err := json.Marshal(p)
	if err != nil {
		p.Meta = nil // members from the runtime may fail to encode; the problem itself cannot
		body, _ = json.Marshal(p)
	}
	if _, known := kindOf(p.Code); known {
		s.o.Metrics.Problem(p.Code)
	}
	if p.retry != "" {
		w.Header().Set("Retry-After", spread(p))
	}
	if r.URL.Path == mcpPath { // MCP clients read JSON-RPC
		mcp.WriteError(w, p.Status, w.messageID, p.Detail, body)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a write fails only when the client has gone
}

// spreadOver is the number of seconds over which the retries of requests refused at the same time are spread.
const spreadOver = 4

// spread returns the value of Retry-After. For full queues it adds random seconds: clients refused together would
// otherwise return together and fill the queue again.
func spread(p *Problem) string {
	switch p.Code {
	case codeQueueFull, codeStreamsFull, codeBodiesFull, codeRepliesFull:
		if least, err := strconv.Atoi(p.retry); err == nil {
			return strconv.Itoa(least + rand.IntN(spreadOver)) // nobody gains by guessing it
		}
	}
	return p.retry
}

// maxProblemText bounds each text of a problem, in bytes. Pointers contain names from the request, which can be
// megabytes long.
const maxProblemText = 8 << 10

// shorten truncates texts over maxProblemText.
func (p *Problem) shorten() {
	texts := []*string{&p.Detail, &p.Hint}
	for i := range p.Errors {
		e := &p.Errors[i]
		texts = append(texts, &e.Pointer, &e.Detail, &e.Hint)
	}
	for _, t := range texts {
		if len(*t) > maxProblemText {
			*t = strings.ToValidUTF8((*t)[:maxProblemText], "") + "..."
		}
	}
}

// noRoute answers a request whose path does not exist.
func (s *server) noRoute(w *reply, r *http.Request) error {
	path, hint := r.URL.EscapedPath(), ""
	switch {
	case strings.HasPrefix(path, "/v1/v1/"):
		hint = "Remove one /v1: the daemon's address ends before it."
	case !strings.HasPrefix(path, "/v1/") && path != mcpPath && !strings.HasPrefix(path, "/."):
		hint = "Paths begin with /v1, such as /v1/sessions. GET /openapi.yaml lists all."
	}
	return fault(codeNoRoute, "there is nothing at "+path, hint)
}

// problemPage describes a problem type, whose URI is its path.
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

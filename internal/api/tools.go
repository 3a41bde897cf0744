package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/strict"
)

// Tools are the operations on roles and their contracts that the interface needs from a runtime.
type Tools interface {
	Tool(ctx context.Context, role string) (operator.KnownTool, error)
	FindTools(ctx context.Context, q overview.Query) (tools []operator.KnownTool, next string, err error)
	// PutTool reports in created whether the role was not registered before.
	PutTool(ctx context.Context, q operator.ToolPut) (t operator.ChangedTool, created bool, err error)
	DecideContract(ctx context.Context, q operator.ContractDecision) (operator.ChangedTool, error)
	ArchiveTool(ctx context.Context, role, reason, actor string) error
	ByPerson(ctx context.Context, role string) bool // whether a person registered the role
	// Staleness returns a function that reports why an artifact's program may no longer do what people want, or "".
	Staleness(ctx context.Context, role string) func(a *agent.Artifact) string
}

const (
	maxReason = 2000 // bytes of an operator's reason
	maxWords  = 200  // bytes of a search
)

// listTools lists tools for people or, with a format, the methods in the format of a model API.
func (s *server) listTools(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after, format := q.limit(), q.text("after"), q.oneOf("format", formatOpenAI, formatResponses,
		formatAnthropic, formatGemini, formatMCP)
	held := q.boolean("strict")
	words, sort := q.text("q"), q.oneOf("sort", overview.ByName, overview.Used, overview.Failed, overview.Cost)
	if len(words) > maxWords {
		q.bad("q", "has more than "+strconv.Itoa(maxWords)+" bytes")
	}
	if format != "" && words+sort != "" {
		q.bad("format", "cannot be combined with q or sort")
	}
	if held != nil && format != formatOpenAI && format != formatResponses {
		q.bad("strict", "needs format="+formatOpenAI+" or format="+formatResponses)
	}
	if err := q.err(); err != nil {
		return err
	}
	if format != "" {
		return s.listFunctions(w, r, functionPage{after: after, limit: limit, format: format, strict: held != nil &&
			*held})
	}
	if sort == overview.Cost {
		if err := w.needs(access.Operate); err != nil { // the order reveals what others spent
			return err
		}
	}
	tools, next, err := w.run.FindTools(r.Context(), overview.Query{Words: words, Sort: cmp.Or(sort, overview.ByName),
		After: after, Limit: limit, Spent: w.only() == ""}) // spending includes that of others
	if err != nil {
		return noPlace(q, err)
	}
	for i := range tools {
		w.cutTool(&tools[i])
	}
	return s.send(w, http.StatusOK, page(tools, limit,
		func(t operator.KnownTool) string { return t.Role }).goesOn(next))
}

// noPlace returns the problem of a cursor that this list cannot have issued, if err is one.
func noPlace(q *query, err error) error {
	if errors.Is(err, overview.ErrCursor) {
		q.bad("after", "is not a cursor of this list: send the next_cursor of the previous page, or leave it out")
		return q.err()
	}
	return err
}

func noTool(err error, role string) error { return missing(err, "tool "+strconv.Quote(role)) }

func (s *server) getTool(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	t, err := w.run.Tool(r.Context(), role)
	if err != nil {
		return noTool(err, role)
	}
	w.cutTool(&t)
	return s.sendRevision(w, http.StatusOK, t.Revision, t)
}

// putTool registers a role or changes its contracts.
func (s *server) putTool(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r, 1)
	if err != nil {
		return err
	}
	var c agent.Contract
	var methods map[string]agent.Contract
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch {
		case string(name) == "methods":
			methods = f.methods(v)
		case !f.contractMember("", name, v, &c):
			f.unknown("", name, contractNames+", methods")
		}
	})
	if err != nil {
		return err
	}
	revision, err = existing(revision, func() error {
		_, err := w.run.Tool(r.Context(), role)
		return err
	}, "there is no tool "+strconv.Quote(role), "leave If-Match out to register it")
	if err != nil {
		return err
	}
	t, created, err := w.run.PutTool(r.Context(), operator.ToolPut{Role: role, Contract: c, Methods: methods,
		Revision: revision, Actor: w.owner})
	if err != nil {
		return preconditionOf(err, revision)
	}
	return s.sendRevision(w, s.putStatus(w, r, created), t.Revision, t)
}

// methods reads contracts by method name.
func (f *fields) methods(v []byte) map[string]agent.Contract {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		f.wrongKind("/methods", "an object of contracts", v)
		return nil
	}
	m := map[string]agent.Contract{}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		at := strict.Pointer("/methods", string(name))
		var bad *agent.NameError
		method, err := agent.Name("method", string(name))
		if errors.As(err, &bad) {
			f.bad(at, bad.Reason, "names have 1 to 200 characters, no slashes, no control or invisible characters, no white space at their ends")
		} else if _, twice := m[method]; twice {
			f.bad(at, "appears twice: Unicode has several forms of the name", "")
		}
		if c := f.contract(at, value); c != nil {
			m[method] = *c
		}
		return nil
	})
	return m
}

// deleteTool moves the tool and its artifacts to the archive, from which they can be restored.
func (s *server) deleteTool(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r, 1)
	if err != nil {
		return err
	}
	err = unchanged(revision, func() (int64, error) {
		t, err := w.run.Tool(r.Context(), role)
		return t.Revision, err
	})
	if err != nil {
		return err
	}
	if err := w.run.ArchiveTool(r.Context(), role, reason, w.owner); err != nil {
		return noTool(err, role)
	}
	return s.noContent(w)
}

// decideContract returns the handler that accepts or rejects a contract that a program proposed for the role.
func (s *server) decideContract(accept bool) handler {
	return func(w *reply, r *http.Request) error {
		role, err := nameParam(r, "role")
		if err != nil {
			return err
		}
		id, ok := idParam(r, "id")
		if !ok {
			return fault(codeNotFound, "there is no proposed contract "+strconv.Quote(param(r, "id")), "")
		}
		t, err := w.run.DecideContract(r.Context(), operator.ContractDecision{Role: role, ID: id, Accept: accept,
			Actor: w.owner})
		if err != nil {
			return missing(err, "proposed contract "+strconv.Quote(id))
		}
		return s.sendRevision(w, http.StatusOK, t.Revision, t)
	}
}

// queryReason reads the reason of an operation whose request has no body.
func queryReason(r *http.Request) (string, error) {
	q := readQuery(r)
	reason := q.text("reason")
	if len(reason) > maxReason {
		q.bad("reason", "has more than "+strconv.Itoa(maxReason)+" bytes")
	}
	return reason, q.err()
}

// rejections returns the rejections without hints and owners, which only models see.
func rejections(a *agent.Artifact) []agent.Rejection {
	out := slices.Clone(a.Rejections)
	for i := range out {
		out[i].Hint, out[i].Owner = "", ""
	}
	return out
}

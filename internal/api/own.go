package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A subject is what an operation shows or changes. It decides whom the operation serves without the scope operate: a
// principal without it sees sessions and calls of others as if they did not exist.
type subject int

const (
	ofDaemon    subject = iota + 1 // the daemon: all who have the operation's scope
	ofNamespace                    // what the owners of a namespace share: all of them who have the operation's scope
	ofSession                      // the session {id} of the path: its owner
	ofCall                         // the call {call_id} of the path: the owner of its session
	// what the principal owns. The handler passes its name on, or what only returns, and cuts from replies what belongs
	// to others.
	ofPrincipal
)

// owning wraps a handler with the check that its subject belongs to the principal.
func (s *server) owning(about subject, h handler) handler {
	check := map[subject]func(*reply, *http.Request) error{ofSession: checkSession, ofCall: checkCall}[about]
	if check == nil {
		return h
	}
	return func(w *reply, r *http.Request) error {
		if w.only() != "" {
			if err := check(w, r); err != nil {
				return err
			}
		}
		return h(w, r)
	}
}

func checkSession(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	return noSession(w.ownsSession(r.Context(), id), id)
}

func checkCall(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	owner, err := w.run.CallOwner(r.Context(), id)
	if err == nil && owner != w.owner {
		err = store.ErrNotFound
	}
	return noCall(err, id)
}

// only returns the owner to whose sessions, calls and files the request is restricted. It returns "" for principals
// that may operate, who see everyone's.
func (w *reply) only() string {
	if w.who.Scopes.Has(access.Operate) {
		return ""
	}
	return w.owner
}

// ownsSession returns store.ErrNotFound if the request is restricted to another owner than the session's.
func (w *reply) ownsSession(ctx context.Context, id string) error {
	if w.only() == "" {
		return nil
	}
	session, err := w.run.Session(ctx, id)
	if err == nil && !session.OwnedBy(w.owner) {
		err = store.ErrNotFound
	}
	return err
}

// sees returns a function that reports whether the request may see a call; nil means every call.
func (w *reply) sees() func(ctx context.Context, callID string) bool {
	if w.only() == "" {
		return nil
	}
	return func(ctx context.Context, callID string) bool {
		owner, err := w.run.CallOwner(ctx, callID)
		return err == nil && owner == w.owner
	}
}

// maxCallsRead bounds how many log entries are read for one page of an owner's calls, since most may be others'. The
// page may then be incomplete, with a cursor.
const maxCallsRead = 10_000

// scan returns how many log entries may be read for a page of calls.
func (w *reply) scan() *store.Scan {
	if w.only() == "" {
		return &store.Scan{Most: math.MaxInt}
	}
	return &store.Scan{Most: maxCallsRead}
}

// callView returns a call as the request may see it.
func (w *reply) callView(ctx context.Context, id string) (operator.CallView, error) {
	view, err := w.run.CallView(ctx, id)
	if w.only() != "" {
		view.LogEntry = view.WithoutOthers()
	}
	return view, err
}

// cutEntries removes from the entries of the owner's calls what belongs to others.
func (w *reply) cutEntries(entries []agent.LogEntry) {
	if w.only() == "" {
		return
	}
	for i := range entries {
		entries[i] = entries[i].WithoutOthers()
	}
}

// cutEvents returns emit for the events of a call, whose last one carries the call as callView returns it.
func (w *reply) cutEvents(ctx context.Context, id string, emit func(progress.Event) error) func(progress.Event) error {
	if w.only() == "" {
		return emit
	}
	return func(e progress.Event) error {
		if e.Type == progress.Finished {
			view, err := w.callView(ctx, id)
			if err != nil {
				return err
			}
			if e.Data, err = json.Marshal(view); err != nil {
				return fmt.Errorf("encode the event: %w", err)
			}
		}
		return emit(e)
	}
}

// cutTool removes details of single calls from a tool's health, and another owner's name.
func (w *reply) cutTool(t *operator.KnownTool) {
	if w.only() == "" {
		return
	}
	if t.Health = t.Health.WithoutCalls(); t.Owner != w.owner {
		t.Owner = ""
	}
}

// cutExamples returns the examples that the request may see. Active ones are visible to everyone, without the calls of
// others that they come from. A proposed example is visible only to the owner of its call.
func (w *reply) cutExamples(ctx context.Context, all []agent.Example) []agent.Example {
	sees := w.sees()
	if sees == nil {
		return all
	}
	out := make([]agent.Example, 0, len(all))
	for _, x := range all {
		if x.CallID == "" || sees(ctx, x.CallID) {
			out = append(out, x)
		} else if x.State == agent.ExampleActive {
			out = append(out, x.WithoutCall())
		}
	}
	return out
}

// cutTypes counts the error types that programs define as "other", since their names may contain data of others.
func (w *reply) cutTypes(types *map[string]int) {
	if w.only() == "" {
		return
	}
	out := make(map[string]int, len(*types))
	for name, n := range *types {
		if !slices.Contains(agent.ErrorTypes(), name) {
			name = "other"
		}
		out[name] += n
	}
	*types = out
}

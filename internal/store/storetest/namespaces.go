package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// in returns a namespace of the rig's store.
func (r *rig) in(name agent.Namespace) store.Namespace {
	r.Helper()
	n, err := r.store.Namespace(name)
	r.ok(err)
	return n
}

// fillNamespace creates one of each thing in a namespace. Names are the same in all namespaces; the content has the
// mark.
func (r *rig) fillNamespace(n store.Namespace, mark string) {
	r.Helper()
	now := r.clock.now()
	r.ok(n.CreateSession(r.ctx, agent.Session{ID: "sess_1", Role: mark, CreatedAt: now, UpdatedAt: now},
		map[string]json.RawMessage{"mark": json.RawMessage(`"` + mark + `"`)}))
	_, err := n.PutTool(r.ctx, agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: mark}}, 0, nil)
	r.ok(err)
	c := Forged(NewCommit("sess_1", "call_1", now), "package tool // "+mark)
	c.Log.Model, c.Record.TraceID = mark, mark
	c.Pattern = &agent.PatternEvent{CallID: "call_1", SessionID: "sess_1", Role: "calculator", MethodName: mark,
		Timestamp: c.Record.Timestamp}
	c.Content = &store.Content{Ref: "content:1", Value: json.RawMessage(`"` + mark + `"`)}
	c.Key, c.Reply = &store.Idempotent{Key: "key"}, json.RawMessage(`"`+mark+`"`)
	r.ok(n.CommitCall(r.ctx, c))
	p := agent.DefaultPolicy()
	p.DelegationDepth = len(mark)
	r.ok(n.SetPolicy(r.ctx, p, store.AnyRevision, &agent.AuditEntry{ID: "audit_1", Reason: mark}))
}

// marks reads each thing in a namespace and returns the marks found.
func (r *rig) marks(n store.Namespace) string {
	r.Helper()
	s, err := n.Session(r.ctx, "sess_1")
	r.ok(err)
	values, err := n.Context(r.ctx, "sess_1")
	r.ok(err)
	tool, err := n.Tool(r.ctx, "calculator")
	r.ok(err)
	a, err := n.Artifact(r.ctx, "calculator", "add")
	r.ok(err)
	code, err := n.Program(r.ctx, a.CodeChecksum)
	r.ok(err)
	call, err := n.Call(r.ctx, "call_1")
	r.ok(err)
	events, err := n.Patterns(r.ctx, "calculator")
	r.ok(err)
	content, err := n.Content(r.ctx, "content:1")
	r.ok(err)
	reply, err := n.Replay(r.ctx, "key")
	r.ok(err)
	p, _, err := n.Policy(r.ctx)
	r.ok(err)
	audit, err := n.Audit(r.ctx, store.AuditQuery{Limit: 10})
	r.ok(err)
	records := Records(r.T, n, "sess_1")
	return fmt.Sprint(s.Role, values["mark"], tool.Purpose, a.Code[len("package tool // "):],
		code[len("package tool // "):], call.Log.Model, len(events), events[0].MethodName,
		string(content), string(reply.Reply), p.DelegationDepth, len(audit), audit[0].Reason, len(records),
		records[0].TraceID, a.SuccessCount)
}

// namespaces checks that nothing in a namespace can be read or changed through another one, even if all names are the
// same.
func namespaces(t *testing.T, r *rig) {
	names := []agent.Namespace{agent.DefaultNamespace, "acme", "other-1"}
	for _, name := range names {
		r.fillNamespace(r.in(name), string(name))
	}
	want := map[agent.Namespace]string{}
	for _, name := range names {
		want[name] = r.marks(r.in(name))
		for _, other := range names {
			if other != name && want[other] == want[name] {
				t.Fatalf("%s and %s hold the same: %s", name, other, want[name])
			}
		}
	}
	r.everyWay(func() {
		for _, name := range names {
			if got := r.marks(r.in(name)); got != want[name] {
				t.Errorf("%s: got %s, want %s", name, got, want[name])
			}
		}
		if got := r.store.Stats(); got.Sessions != 3 || got.Tools != 3 ||
			got.Artifacts[agent.StateCandidate]+got.Artifacts[agent.StateProbation]+got.Artifacts[agent.StateDurable] != 3 {
			t.Errorf("got %+v, want the sum of the three", got)
		}
	})
	acme := r.in("acme")
	r.ok(acme.DeleteSession(r.ctx, "sess_1", nil))
	r.ok(acme.Archive(r.ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_2"}))
	r.everyWay(func() {
		acme := r.in("acme")
		if _, err := acme.Session(r.ctx, "sess_1"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the deleted session: got %v, want ErrNotFound", err)
		}
		if _, err := acme.Tool(r.ctx, "calculator"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the archived tool: got %v, want ErrNotFound", err)
		}
		for _, name := range []agent.Namespace{agent.DefaultNamespace, "other-1"} {
			if got := r.marks(r.in(name)); got != want[name] {
				t.Errorf("%s, after changes in another one: got %s, want %s", name, got, want[name])
			}
		}
	})
	if err := r.in("other-1").Restore(r.ctx, []store.Target{{Role: "calculator"}},
		agent.AuditEntry{ID: "audit_3"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("restoring what another one archived: got %v, want ErrNotFound", err)
	}
	r.ok(r.in("acme").Restore(r.ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_4"}))
	if tool, err := r.in("acme").Tool(r.ctx, "calculator"); err != nil || tool.Purpose != "acme" {
		t.Errorf("got %+v, %v, want the tool of acme", tool, err)
	}
}

// emptyNamespaces checks that a namespace without writes is empty, that reading does not create it, and that an invalid
// name is rejected.
func emptyNamespaces(t *testing.T, r *rig) {
	r.fillNamespace(r.s, "default")
	r.everyWay(func() {
		n := r.in("nobody")
		for what, err := range map[string]error{
			"session":  second(n.Session(r.ctx, "sess_1")),
			"tool":     second(n.Tool(r.ctx, "calculator")),
			"artifact": second(n.Artifact(r.ctx, "calculator", "add")),
			"call":     second(n.Call(r.ctx, "call_1")),
			"reply":    second(n.Replay(r.ctx, "key")),
			"content":  second(n.Content(r.ctx, "content:1")),
			"commit":   n.CommitCall(r.ctx, NewCommit("sess_1", "call_9", r.clock.now())),
			"delete":   n.DeleteSession(r.ctx, "sess_1", nil),
		} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", what, err)
			}
		}
		sessions, err := n.ListSessions(r.ctx, "", 10)
		r.ok(err)
		calls, err := n.ListCalls(r.ctx, store.CallQuery{})
		r.ok(err)
		tools, err := n.ListTools(r.ctx, "", 10)
		r.ok(err)
		p, _, err := n.Policy(r.ctx)
		r.ok(err)
		if len(sessions)+len(calls)+len(tools) != 0 || p.DelegationDepth != agent.DefaultPolicy().DelegationDepth {
			t.Errorf("got %d sessions, %d calls, %d tools, depth %d", len(sessions), len(calls), len(tools),
				p.DelegationDepth)
		}
	})
	for _, name := range []agent.Namespace{"", "..", "a/b", "Upper"} {
		if n, err := r.store.Namespace(name); err == nil {
			t.Errorf("%q: got %v, want an error", name, n)
		}
	}
}

// second returns the error of a call with two results.
func second[V any](_ V, err error) error { return err }

// watchNamespaces checks that each change in the feed names its namespace.
func watchNamespaces(t *testing.T, r *rig) {
	got := make(chan store.Change, 10)
	stop := r.watch(r.store, "", func(c store.Change) { got <- c })
	defer stop()
	for _, name := range []agent.Namespace{agent.DefaultNamespace, "acme"} {
		_, err := r.in(name).PutTool(r.ctx, agent.Tool{Role: "calculator", CreatedAt: r.clock.now().Add(time.Second)},
			0, nil)
		r.ok(err)
		if c := <-got; c.Namespace != name || c.Kind != "tool" || c.Role != "calculator" {
			t.Errorf("got %+v, want a tool of %s", c, name)
		}
	}
}

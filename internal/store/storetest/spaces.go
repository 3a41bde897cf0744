package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// names lists the namespaces, in pages of that size.
func (r *rig) names(page int) (out []agent.Namespace) {
	r.Helper()
	after := agent.Namespace("")
	for {
		list, err := r.store.ListNamespaces(r.ctx, after, page)
		r.ok(err)
		if len(list) == 0 {
			return out
		}
		for _, info := range list {
			out = append(out, info.Name)
			after = info.Name
		}
	}
}

// spacesList checks that a namespace exists from its creation or its first write on, and that the list is sorted by
// name.
func spacesList(t *testing.T, r *rig) {
	if got := fmt.Sprint(r.names(5)); got != "[default]" {
		t.Errorf("of a new store: got %s, want [default]", got)
	}
	r.in("read") // does not create it
	r.fillNamespace(r.in("written"), "written")
	made, err := r.store.CreateNamespace(r.ctx, "made", &agent.AuditEntry{ID: "audit_made", Action: "namespace.create"})
	r.ok(err)
	if !made.CreatedAt.Equal(r.clock.now()) {
		t.Errorf("got %+v, want it made at %s", made, r.clock.now())
	}
	for name, want := range map[agent.Namespace]error{"made": store.ErrExists, "written": store.ErrExists,
		agent.DefaultNamespace: store.ErrExists} {
		if _, err := r.store.CreateNamespace(r.ctx, name, &agent.AuditEntry{ID: "no"}); !errors.Is(err, want) {
			t.Errorf("make %s: got %v, want %v", name, err, want)
		}
	}
	if _, err := r.store.CreateNamespace(r.ctx, "Not Valid", nil); err == nil {
		t.Error("a name that is not valid was accepted")
	}
	r.everyWay(func() {
		for page := 1; page < 5; page++ {
			if got := fmt.Sprint(r.names(page)); got != "[default made written]" {
				t.Errorf("in pages of %d: got %s, want [default made written]", page, got)
			}
		}
		if _, err := r.store.NamespaceInfo(r.ctx, "read"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("one that was only read: got %v, want ErrNotFound", err)
		}
		got, err := r.store.NamespaceInfo(r.ctx, "made")
		if err != nil || !got.CreatedAt.Equal(made.CreatedAt) {
			t.Errorf("got %+v, %v, want %+v", got, err, made)
		}
		trail, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10})
		r.ok(err)
		if len(trail) != 1 || trail[0].ID != "audit_made" {
			t.Errorf("got the trail %+v, want the entry of the one that was made", trail)
		}
	})
}

// spacesErase checks that an erased namespace is gone with everything in it, even for those with a handle. Other
// namespaces do not change, and a new one with the same name is empty.
func spacesErase(t *testing.T, r *rig) {
	for _, name := range []agent.Namespace{agent.DefaultNamespace, "acme", "other-1"} {
		r.fillNamespace(r.in(name), string(name))
	}
	want := map[agent.Namespace]string{agent.DefaultNamespace: r.marks(r.s), "other-1": r.marks(r.in("other-1"))}
	draft, err := r.in("acme").NewDraft()
	r.ok(err)
	defer draft.Discard()
	for name, want := range map[agent.Namespace]error{agent.DefaultNamespace: store.ErrDefault,
		"nobody": store.ErrNotFound} {
		if err := r.store.EraseNamespace(r.ctx, name, &agent.AuditEntry{ID: "no"}); !errors.Is(err, want) {
			t.Errorf("erase %s: got %v, want %v", name, err, want)
		}
	}
	changes := make(chan store.Change, 1000)
	defer r.watch(r.store, "", func(c store.Change) { changes <- c })()
	held := r.in("acme")
	r.ok(r.store.EraseNamespace(r.ctx, "acme", &agent.AuditEntry{ID: "audit_erased", Action: "namespace.delete"}))
	if c := <-changes; c.Namespace != "acme" || c.Kind != "namespace" {
		t.Errorf("got the change %+v, want that acme is gone", c)
	}
	r.gone(held, draft)
	want[agent.DefaultNamespace] = r.marks(r.s) // its trail has the entry
	if err := r.store.EraseNamespace(r.ctx, "acme", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("erasing it twice: got %v, want ErrNotFound", err)
	}
	r.everyWay(func() {
		if got := fmt.Sprint(r.names(5)); got != "[default other-1]" {
			t.Errorf("got %s, want [default other-1]", got)
		}
		for name, want := range want {
			if got := r.marks(r.in(name)); got != want {
				t.Errorf("%s, after another one was erased: got %s, want %s", name, got, want)
			}
		}
		r.empty(r.in("acme"))
	})
	_, err = r.store.CreateNamespace(r.ctx, "acme", nil)
	r.ok(err)
	r.gone(held, nil)
	r.everyWay(func() { r.empty(r.in("acme")) })
	r.fillNamespace(r.in("acme"), "again")
	again := r.marks(r.in("acme"))
	r.everyWay(func() {
		if got := r.marks(r.in("acme")); got != again {
			t.Errorf("the second one: got %s, want %s", got, again)
		}
	})
}

// gone checks that a handle from before the erasure returns nothing and accepts nothing.
func (r *rig) gone(n store.Namespace, draft store.Draft) {
	r.Helper()
	add := agent.ArtifactChange{Role: "calculator", MethodName: "add", At: r.clock.now()}
	for what, err := range map[string]error{
		"session":    second(n.Session(r.ctx, "sess_1")),
		"history":    second(n.History(r.ctx, "sess_1", store.HistoryQuery{})),
		"tool":       second(n.Tool(r.ctx, "calculator")),
		"artifact":   second(n.Artifact(r.ctx, "calculator", "add")),
		"call":       second(n.Call(r.ctx, "call_1")),
		"reply":      second(n.Replay(r.ctx, "key")),
		"content":    second(n.Content(r.ctx, "content:1")),
		"create":     n.CreateSession(r.ctx, agent.Session{ID: "sess_2"}, nil),
		"commit":     n.CommitCall(r.ctx, NewCommit("", "call_9", r.clock.now())),
		"change":     second(n.ChangeArtifact(r.ctx, store.AnyRevision, add, nil)),
		"put tool":   second(n.PutTool(r.ctx, agent.Tool{Role: "finder"}, 0, nil)),
		"set policy": n.SetPolicy(r.ctx, agent.DefaultPolicy(), store.AnyRevision, nil),
		"audit":      n.AppendAudit(r.ctx, agent.AuditEntry{ID: "audit_late"}),
		"connection": second(n.PutConnection(r.ctx, weather("late"), 0, nil)),
		"draft":      second(n.NewDraft()),
		"delete":     n.DeleteSession(r.ctx, "sess_1", nil),
	} {
		if !errors.Is(err, store.ErrGone) && !errors.Is(err, store.ErrNotFound) {
			r.Errorf("%s of an erased namespace: got %v, want ErrGone or ErrNotFound", what, err)
		}
	}
	if draft == nil {
		return
	}
	if err := n.AddFile(r.ctx, store.NewFile{File: agent.File{ID: "file_late"},
		Draft: draft}); !errors.Is(err, store.ErrGone) {
		r.Errorf("a file of an erased namespace: got %v, want ErrGone", err)
	}
}

// empty checks that a namespace is empty.
func (r *rig) empty(n store.Namespace) {
	r.Helper()
	sessions, err := n.ListSessions(r.ctx, "", 10)
	r.ok(err)
	calls, err := n.ListCalls(r.ctx, store.CallQuery{})
	r.ok(err)
	tools, err := n.ListTools(r.ctx, "", 10)
	r.ok(err)
	artifacts, err := n.ListArtifacts(r.ctx, "calculator")
	r.ok(err)
	trail, err := n.Audit(r.ctx, store.AuditQuery{Limit: 10})
	r.ok(err)
	files, err := n.ListFiles(r.ctx, "", "", 10)
	r.ok(err)
	events, err := n.Patterns(r.ctx, "calculator")
	r.ok(err)
	evidence, err := n.AllEvidence(r.ctx)
	r.ok(err)
	if n := len(sessions) + len(calls) + len(tools) + len(artifacts) + len(trail) + len(files) + len(events) +
		len(evidence); n != 0 {
		r.Errorf("got %d things, want none: %v %v %v %v", n, sessions, calls, tools, trail)
	}
	for what, err := range map[string]error{
		"reply": second(n.Replay(r.ctx, "key")), "content": second(n.Content(r.ctx, "content:1")),
		"call": second(n.Call(r.ctx, "call_1")),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			r.Errorf("%s: got %v, want ErrNotFound", what, err)
		}
	}
	if p, _, err := n.Policy(r.ctx); err != nil || p.DelegationDepth != agent.DefaultPolicy().DelegationDepth {
		r.Errorf("got the policy %+v, %v, want the default one", p, err)
	}
}

// spacesDue checks that a namespace is due until it is expired, and again when it has changed or a day has passed. An
// empty one is never due.
func spacesDue(t *testing.T, r *rig) {
	r.fillNamespace(r.in("used"), "used")
	_, err := r.store.CreateNamespace(r.ctx, "unused", nil)
	r.ok(err)
	due := func(name agent.Namespace) time.Time {
		info, err := r.store.NamespaceInfo(r.ctx, name)
		r.ok(err)
		return info.Due
	}
	for _, name := range []agent.Namespace{"used", "unused"} {
		if at := due(name); !at.IsZero() {
			t.Errorf("%s, never expired: due at %s, want now", name, at)
		}
		_, err := r.in(name).Expire(r.ctx, r.clock.now())
		r.ok(err)
	}
	tomorrow := r.clock.now().Add(store.ExpireEvery)
	if r.h.Reopen != nil {
		r.use(r.h.Reopen(t, r.store, false)) // a kill may lose it
	}
	r.everyWay(func() {
		if used, unused := due("used"), due("unused"); !used.Equal(tomorrow) || !unused.Equal(store.Never) {
			t.Errorf("after it: due at %s and %s, want %s and never", used, unused, tomorrow)
		}
	})
	r.session("sess_of_default")
	r.ok(r.in("unused").CreateSession(r.ctx, agent.Session{ID: "sess_1", CreatedAt: r.clock.now(),
		UpdatedAt: r.clock.now()}, nil))
	if used, unused := due("used"), due("unused"); !used.Equal(tomorrow) || !unused.IsZero() {
		t.Errorf("after a change of one: due at %s and %s, want %s and now", used, unused, tomorrow)
	}
}

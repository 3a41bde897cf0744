package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

var add = []store.Target{{Role: "calculator", Method: "add"}}

// remove checks that removed artifacts can be restored unchanged for a day, and not any more after that, whether or not
// Expire has run.
func remove(t *testing.T, r *rig) {
	before := r.forge("calculator", "add", "package tool // add")
	r.forge("calculator", "sub", "package tool // sub")
	r.ok(r.s.Remove(r.ctx, add, agent.AuditEntry{ID: "audit_1"}))
	r.everyWay(func() {
		if _, err := r.s.Artifact(r.ctx, "calculator", "add"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if _, err := r.s.Artifact(r.ctx, "calculator", "sub"); err != nil {
			t.Errorf("the other one: %v", err)
		}
		r.ok(r.s.Archived(r.ctx, add, "audit_1"))
	})
	r.clock.advance(store.DeletedLife - time.Second)
	r.expire()
	r.everyWay(func() { r.ok(r.s.Archived(r.ctx, add, "audit_1")) })
	r.ok(r.s.Restore(r.ctx, add, agent.AuditEntry{ID: "audit_2", Undoes: "audit_1"}))
	r.everyWay(func() {
		if got, err := r.s.Artifact(r.ctx, "calculator", "add"); err != nil || !sameJSON(got, before) {
			t.Errorf("got %+v, %v, want %+v", got, err, before)
		}
	})
	r.clock.advance(time.Minute)
	r.expire()
	if _, err := r.s.Artifact(r.ctx, "calculator", "add"); err != nil {
		t.Errorf("what came back went with its day: %v", err)
	}
	r.ok(r.s.Remove(r.ctx, add, agent.AuditEntry{ID: "audit_3"}))
	r.clock.advance(store.DeletedLife)
	gone := func() {
		t.Helper()
		if err := r.s.Restore(r.ctx, add, agent.AuditEntry{ID: "audit_4"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a day after: got %v, want ErrNotFound", err)
		}
		if err := r.s.Archived(r.ctx, add, "audit_3"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a day after the archive is said to have it: %v", err)
		}
	}
	gone()
	r.expire()
	r.everyWay(gone)
	r.forge("calculator", "add", "package tool // anew")
	r.everyWay(func() {
		if a, err := r.s.Artifact(r.ctx, "calculator",
			"add"); err != nil || a.Code != "package tool // anew" || a.Revision != 1 {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

// deletedEnds checks that Expire frees only what was removed a day ago, and sets when it is due again.
func deletedEnds(t *testing.T, r *rig) {
	r.s = r.in("acme")
	_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "calculator"}, 0, nil)
	r.ok(err)
	put := func(method string) []store.Target {
		_, err := r.s.ChangeArtifact(r.ctx, 0, agent.ArtifactChange{Role: "calculator", MethodName: method,
			At: r.clock.now(), Generation: NewGeneration("gen-1", "package tool // "+method, r.clock.now())}, nil)
		r.ok(err)
		return []store.Target{{Role: "calculator", Method: method}}
	}
	kept, gone := put("kept"), put("gone")
	r.ok(r.s.Archive(r.ctx, kept, agent.AuditEntry{ID: "audit_1"}))
	r.ok(r.s.Remove(r.ctx, gone, agent.AuditEntry{ID: "audit_2"}))
	r.ok(r.s.Remove(r.ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_3"}))
	due := func(want bool) {
		t.Helper()
		info, err := r.store.NamespaceInfo(r.ctx, "acme")
		r.ok(err)
		if info.Due.Equal(store.Never) == want {
			t.Errorf("due at %v, want an end of what was deleted: %v", info.Due, want)
		}
	}
	r.expire()
	due(true)
	r.clock.advance(store.DeletedLife)
	r.expire()
	due(false)
	r.s = r.in("acme")
	r.ok(r.s.Restore(r.ctx, kept, agent.AuditEntry{ID: "audit_4"}))
	for _, c := range [][]store.Target{gone, {{Role: "calculator", ToolOnly: true}}} {
		if err := r.s.Restore(r.ctx, c, agent.AuditEntry{ID: "audit_5"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: got %v, want ErrNotFound", c, err)
		}
	}
}

// deletedForgets checks that erasing a session also erases its data in removed artifacts.
func deletedForgets(t *testing.T, r *rig) {
	r.session("sess_1")
	c := Forged(r.call("sess_1"), "package tool")
	c.Artifacts[0].Fixture = &agent.Fixture{CallID: c.Log.CallID, SessionID: "sess_1", Value: []byte(`"secret"`)}
	r.commit(c)
	target := []store.Target{{Role: c.Artifacts[0].Role, Method: c.Artifacts[0].MethodName}}
	r.ok(r.s.Remove(r.ctx, target, agent.AuditEntry{ID: "audit_1"}))
	r.ok(r.s.DeleteSession(r.ctx, "sess_1", nil))
	r.ok(r.s.Restore(r.ctx, target, agent.AuditEntry{ID: "audit_2"}))
	r.everyWay(func() {
		a, err := r.s.Artifact(r.ctx, target[0].Role, target[0].Method)
		r.ok(err)
		if text := string(agent.Encoded(a)); strings.Contains(text, "secret") || strings.Contains(text, "sess_1") {
			t.Errorf("it remembers the session: %s", text)
		}
	})
}

// restoreBelow checks that an artifact restored while a newer program is in use comes back below it. The newer program
// stays in use, and the archive keeps its version. An undo takes the restored one away again exactly, and can itself be
// undone.
func restoreBelow(t *testing.T, r *rig) {
	for i, take := range []func(agent.AuditEntry) error{
		func(e agent.AuditEntry) error { return r.s.Archive(r.ctx, add, e) },
		func(e agent.AuditEntry) error { return r.s.Remove(r.ctx, add, e) },
	} {
		id := func(of string) string { return fmt.Sprint("audit_", of, i) }
		old := r.forge("calculator", "add", fmt.Sprint("package tool // old ", i))
		r.ok(take(agent.AuditEntry{ID: id("away")}))
		newer := r.forge("calculator", "add", fmt.Sprint("package tool // new ", i))
		r.ok(r.s.Restore(r.ctx, add, agent.AuditEntry{ID: id("back")}))
		r.everyWay(func() {
			a, err := r.s.Artifact(r.ctx, "calculator", "add")
			r.ok(err)
			g := a.RestoredBy(id("back"))
			if a.Code != newer.Code || a.CurrentID != newer.CurrentID || len(a.Generations) != 2 || g == nil ||
				g != a.Generations[1] || g.Code != old.Code || g.ID != "gen-2" || g.Restored.From != id("away") {
				t.Fatalf("got %s", agent.Encoded(a))
			}
			r.ok(r.s.Archived(r.ctx, add, id("away")))
		})
		if err := r.s.Restore(r.ctx, add,
			agent.AuditEntry{ID: id("twice")}); !errors.Is(err, store.ErrExists) ||
			!strings.Contains(err.Error(), "gen-2") {
			t.Errorf("restoring it twice: got %v, want ErrExists with where it is", err)
		}
		again := []store.Target{{Role: "calculator", Method: "add", Restored: id("back")}}
		r.ok(r.s.Archive(r.ctx, again, agent.AuditEntry{ID: id("undo")}))
		r.everyWay(func() {
			if a, err := r.s.Artifact(r.ctx, "calculator", "add"); err != nil || !sameJSON(a, newer) {
				t.Errorf("undone: got %s, %v, want %s", agent.Encoded(a), err, agent.Encoded(newer))
			}
		})
		if err := r.s.Archive(r.ctx, again,
			agent.AuditEntry{ID: id("undo_twice")}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("undoing it twice: got %v, want ErrNotFound", err)
		}
		from := []store.Target{{Role: "calculator", Method: "add", From: id("away")}}
		r.ok(r.s.Restore(r.ctx, from, agent.AuditEntry{ID: id("redo"), Undoes: id("undo")}))
		a, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, agent.ArtifactChange{Role: "calculator",
			MethodName: "add", At: r.clock.now(), Current: "gen-2"}, nil)
		r.ok(err)
		if a.Code != old.Code {
			t.Errorf("the restored one cannot be picked: %s", a.Code)
		}
		again[0].Restored = id("redo")
		if err := r.s.Archive(r.ctx, again,
			agent.AuditEntry{ID: id("undo_picked")}); !errors.Is(err, store.ErrConflict) {
			t.Errorf("taking away what answers: got %v, want ErrConflict", err)
		}
		r.everyWay(func() {
			if a, err := r.s.Artifact(r.ctx, "calculator",
				"add"); err != nil || a.CurrentID != "gen-2" || len(a.Generations) != 2 {
				t.Errorf("got %s, %v", agent.Encoded(a), err)
			}
		})
		r.ok(r.s.Archive(r.ctx, add, agent.AuditEntry{ID: id("end")}))
	}
}

// restoreRole checks the restore of a role that was partly recreated: missing artifacts come back whole, other programs
// come back below the newer ones, and a newer tool stays. If any target brings nothing back, nothing changes.
func restoreRole(t *testing.T, r *rig) {
	tool := func(purpose string) {
		_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: purpose}}, 0, nil)
		r.ok(err)
	}
	tool("old")
	r.forge("calculator", "add", "package tool // old add")
	sub := r.forge("calculator", "sub", "package tool // old sub")
	all := []store.Target{{Role: "calculator"}}
	r.ok(r.s.Remove(r.ctx, all, agent.AuditEntry{ID: "audit_1"}))
	tool("new")
	newer := r.forge("calculator", "add", "package tool // new add")
	if err := r.s.Restore(r.ctx, []store.Target{{Role: "calculator", Method: "sub"},
		{Role: "calculator", ToolOnly: true}}, agent.AuditEntry{ID: "audit_x"}); !errors.Is(err, store.ErrExists) {
		t.Errorf("a tool over a newer one: got %v, want ErrExists", err)
	}
	if _, err := r.s.Artifact(r.ctx, "calculator", "sub"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a restore that was refused restored a part: %v", err)
	}
	r.ok(r.s.Restore(r.ctx, all, agent.AuditEntry{ID: "audit_2"}))
	r.everyWay(func() {
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		if a.Code != newer.Code || len(a.Generations) != 2 || a.Generations[1].Code != "package tool // old add" {
			t.Errorf("got %s", agent.Encoded(a))
		}
		if got, err := r.s.Artifact(r.ctx, "calculator", "sub"); err != nil || !sameJSON(got, sub) {
			t.Errorf("got %s, %v", agent.Encoded(got), err)
		}
		if got, err := r.s.Tool(r.ctx, "calculator"); err != nil || got.Purpose != "new" {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	if err := r.s.Restore(r.ctx, all, agent.AuditEntry{ID: "audit_3"}); !errors.Is(err, store.ErrExists) {
		t.Errorf("with nothing left to bring back: got %v, want ErrExists", err)
	}
}

// expire applies the retention and ends removed versions.
func (r *rig) expire() {
	r.Helper()
	_, err := r.s.Expire(r.ctx, r.clock.now())
	r.ok(err)
}

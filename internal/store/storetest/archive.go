package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// archiveAndRestore checks that archived artifacts and tools are gone, and come back unchanged.
func archiveAndRestore(t *testing.T, r *rig) {
	before := r.forge("calculator", "add", "package tool // add")
	r.forge("calculator", "sub", "package tool // sub")
	_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "calculator", Contract: agent.Contract{Purpose: "sums"}}, 0, nil)
	r.ok(err)
	r.ok(r.s.Archive(r.ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_1"}))
	r.everyWay(func() {
		if _, err := r.s.Artifact(r.ctx, "calculator", "add"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("artifact: got %v, want ErrNotFound", err)
		}
		if _, err := r.s.Tool(r.ctx, "calculator"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("tool: got %v, want ErrNotFound", err)
		}
		if list, err := r.s.ListArtifacts(r.ctx, "calculator"); err != nil || len(list) != 0 {
			t.Errorf("list: got %v, %v", list, err)
		}
	})
	if err := r.s.Restore(r.ctx, []store.Target{{Role: "nobody"}},
		agent.AuditEntry{ID: "audit_x"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("restoring what was not archived: got %v, want ErrNotFound", err)
	}
	r.ok(r.s.Restore(r.ctx, []store.Target{{Role: "calculator", Method: "add"}}, agent.AuditEntry{ID: "audit_2"}))
	if _, err := r.s.Tool(r.ctx, "calculator"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("restoring one artifact restored the tool: %v", err)
	}
	r.ok(r.s.Archive(r.ctx, []store.Target{{Role: "calculator", Method: "add"}}, agent.AuditEntry{ID: "audit_3"}))
	r.ok(r.s.Restore(r.ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_4"}))
	r.everyWay(func() {
		got, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		if !sameJSON(got, before) {
			t.Errorf("got %+v, want %+v", got, before)
		}
		tool, err := r.s.Tool(r.ctx, "calculator")
		if err != nil || tool.Purpose != "sums" {
			t.Errorf("got %+v, %v", tool, err)
		}
		log, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10})
		r.ok(err)
		if len(log) != 4 {
			t.Errorf("got %d audit entries, want 4", len(log))
		}
	})
}

// restoreTools checks that a tool is not restored over one registered meanwhile, and that all archived versions can be
// restored, newest first.
func restoreTools(t *testing.T, r *rig) {
	put := func(purpose string) {
		t.Helper()
		_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "finder", Contract: agent.Contract{Purpose: purpose}}, 0, nil)
		r.ok(err)
	}
	only := []store.Target{{Role: "finder", ToolOnly: true}}
	put("one")
	r.ok(r.s.Archive(r.ctx, only, agent.AuditEntry{ID: "audit_1"}))
	put("two")
	if err := r.s.Restore(r.ctx, only, agent.AuditEntry{ID: "audit_x"}); !errors.Is(err, store.ErrExists) {
		t.Errorf("restoring over a new one: got %v, want ErrExists", err)
	}
	r.ok(r.s.Archive(r.ctx, only, agent.AuditEntry{ID: "audit_2"}))
	r.ok(r.s.Restore(r.ctx, append(only, only...), agent.AuditEntry{ID: "audit_3"}))
	r.everyWay(func() {
		if got, err := r.s.Tool(r.ctx, "finder"); err != nil || got.Purpose != "two" {
			t.Errorf("got %+v, %v, want the newest, once, however often it is named", got, err)
		}
	})
	r.ok(r.s.Remove(r.ctx, only, agent.AuditEntry{ID: "audit_4"}))
	r.clock.advance(store.DeletedLife)
	r.ok(r.s.Restore(r.ctx, only, agent.AuditEntry{ID: "audit_5"}))
	r.everyWay(func() {
		if got, err := r.s.Tool(r.ctx, "finder"); err != nil || got.Purpose != "one" {
			t.Errorf("got %+v, %v, want the one before", got, err)
		}
	})
	r.ok(r.s.Remove(r.ctx, only, agent.AuditEntry{ID: "audit_6"}))
	r.clock.advance(store.DeletedLife)
	if err := r.s.Restore(r.ctx, only, agent.AuditEntry{ID: "audit_x"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("restoring once more: got %v, want ErrNotFound", err)
	}
}

// restoreOf checks that Restore brings back the version of one operation with Undoes, and the latest one without.
func restoreOf(t *testing.T, r *rig) {
	add := []store.Target{{Role: "calculator", Method: "add"}}
	for i, code := range []string{"package tool // first", "package tool // second", "package tool // third"} {
		r.forge("calculator", "add", code)
		r.ok(r.s.Archive(r.ctx, add, agent.AuditEntry{ID: fmt.Sprint("audit_", i)}))
	}
	for i, c := range []struct{ undoes, want string }{{"audit_0", "package tool // first"},
		{"", "package tool // first"}, {"audit_1", "package tool // second"}} {
		if c.undoes != "" {
			r.everyWay(func() { r.ok(r.s.Archived(r.ctx, add, c.undoes)) })
		}
		r.ok(r.s.Restore(r.ctx, add, agent.AuditEntry{ID: fmt.Sprint("back_", i), Undoes: c.undoes}))
		r.everyWay(func() {
			if a, err := r.s.Artifact(r.ctx, "calculator", "add"); err != nil || a.Code != c.want {
				t.Errorf("the undo of %q restored %+v, %v", c.undoes, a, err)
			}
		})
		r.ok(r.s.Archive(r.ctx, add, agent.AuditEntry{ID: fmt.Sprint("away_", i)}))
		if err := r.s.Restore(r.ctx, add, agent.AuditEntry{ID: "twice",
			Undoes: "audit_0"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("restoring what was restored: got %v, want ErrNotFound", err)
		}
		r.everyWay(func() {
			if err := r.s.Archived(r.ctx, add, "audit_0"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("what was restored and archived by another operation is said to be in the archive: %v", err)
			}
		})
	}
}

// stale checks that Stale lists the unused tools and artifacts in order.
func stale(t *testing.T, r *rig) {
	r.session("sess_1")
	_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "old"}, 0, nil)
	r.ok(err)
	for _, m := range []string{"a", "b"} {
		c := Forged(r.call("sess_1"), "package tool")
		c.Artifacts[0].Role, c.Artifacts[0].MethodName = "old", m
		r.commit(c)
	}
	r.clock.advance(48 * time.Hour)
	c := r.call("sess_1")
	c.Artifacts = []agent.ArtifactChange{{Role: "old", MethodName: "b", At: r.clock.now(), Result: agent.ClassOK}}
	r.commit(c)
	_, err = r.s.PutTool(r.ctx, agent.Tool{Role: "unused"}, 0, nil)
	r.ok(err)
	r.clock.advance(12 * time.Hour)
	r.everyWay(func() {
		got, err := r.s.Stale(r.ctx, r.clock.now().Add(-24*time.Hour))
		r.ok(err)
		if len(got) != 1 || got[0].Role != "old" || got[0].Method != "a" {
			t.Errorf("got %+v, want old.a", got)
		}
		got, err = r.s.Stale(r.ctx, r.clock.now())
		r.ok(err)
		names := ""
		for _, x := range got {
			names += x.Role + "." + x.Method + " "
		}
		if names != "old. old.a old.b unused. " {
			t.Errorf("got %s, want all four in order", names)
		}
	})
}

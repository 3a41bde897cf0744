package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// forge stores a first generation with that code.
func (r *rig) forge(role, method, code string) *agent.Artifact {
	r.Helper()
	a, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, agent.ArtifactChange{Role: role, MethodName: method,
		At: r.clock.now(), Generation: NewGeneration("gen-1", code, r.clock.now())}, nil)
	r.ok(err)
	return a
}

// counters checks that each class of result counts once, in the artifact and in the log entry.
func counters(t *testing.T, r *rig) {
	r.session("sess_1")
	r.commit(Forged(r.call("sess_1"), "package tool"))
	classes := []agent.Class{agent.ClassOK, agent.ClassIntrinsic, agent.ClassAdaptive, agent.ClassExtrinsic,
		agent.ClassAuthored, agent.ClassNone}
	for i := range 18 {
		c := r.call("sess_1")
		c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.now(),
			Result: classes[i%6], Reason: "because", SessionID: "sess_1", Caller: fmt.Sprint("owner", i/6)}}
		r.commit(c)
		if want := int64(1 + (i+6)/6); c.Log.ArtifactSuccessCount != want {
			t.Errorf("call %d: log says %d successes, want %d", i, c.Log.ArtifactSuccessCount, want)
		}
	}
	r.everyWay(func() {
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		got := fmt.Sprint(a.SuccessCount, a.FailureCount, a.IntrinsicFailureCount, a.AdaptiveFailureCount,
			a.ExtrinsicFailureCount, a.AuthoredErrorCount)
		if got != "4 9 3 3 3 3" {
			t.Errorf("got counters %s, want 4 9 3 3 3 3", got)
		}
		if got := strings.Join(a.Current().Callers, " "); got != "owner0 owner1" || a.Owner != "ann" ||
			a.Current().Owner != "ann" {
			t.Errorf("called by %q, of %q and %q", got, a.Owner, a.Current().Owner)
		}
	})
}

// artifacts checks the list of a role's artifacts, and the counts by state.
func artifacts(t *testing.T, r *rig) {
	r.forge("calculator", "add", "package tool // add")
	r.forge("calculator", "sub", "package tool // sub")
	r.forge("other", "add", "package tool // other")
	state := func(role, method, state string) {
		_, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, agent.ArtifactChange{Role: role, MethodName: method,
			State: state}, nil)
		r.ok(err)
	}
	state("calculator", "add", agent.StateDurable)
	r.everyWay(func() {
		list, err := r.s.ListArtifacts(r.ctx, "calculator")
		r.ok(err)
		if len(list) != 2 || list[0].MethodName != "add" || list[1].MethodName != "sub" {
			t.Errorf("got %v, want add and sub", list)
		}
		states := r.store.Stats().Artifacts
		if fmt.Sprint(states) != "map[candidate:2 durable:1]" {
			t.Errorf("got states %v", states)
		}
		if list, err := r.s.ListArtifacts(r.ctx, "nobody"); err != nil || len(list) != 0 {
			t.Errorf("got %v, %v for an unknown role", list, err)
		}
	})
}

// artifactRevisions checks that a change needs the current revision, and that a rejected one leaves no audit entry.
func artifactRevisions(t *testing.T, r *rig) {
	a := r.forge("calculator", "add", "package tool")
	reason := "suspect"
	change := agent.ArtifactChange{Role: "calculator", MethodName: "add", Quarantine: &reason}
	b, err := r.s.ChangeArtifact(r.ctx, a.Revision, change, &agent.AuditEntry{ID: "audit_1", Action: "quarantine"})
	r.ok(err)
	if !b.Quarantined || a.Quarantined || b.Revision != a.Revision+1 {
		t.Errorf("got %+v after %+v", b, a)
	}
	if _, err := r.s.ChangeArtifact(r.ctx, a.Revision, change,
		&agent.AuditEntry{ID: "audit_2"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("an old revision: got %v, want ErrConflict", err)
	}
	if _, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, agent.ArtifactChange{Role: "calculator",
		MethodName: "mul"}, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown artifact: got %v, want ErrNotFound", err)
	}
	put := agent.ArtifactChange{Role: "calculator", MethodName: "div",
		Generation: NewGeneration("gen-1", "x", r.clock.now())}
	if _, err := r.s.ChangeArtifact(r.ctx, 1, put, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a revision of none: got %v, want ErrConflict", err)
	}
	if c, err := r.s.ChangeArtifact(r.ctx, 0, put, nil); err != nil || c.Revision != 1 {
		t.Errorf("a new one: got %+v, %v", c, err)
	}
	r.everyWay(func() {
		got, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		if !got.Quarantined || got.QuarantineReason != "suspect" || got.Revision != b.Revision {
			t.Errorf("got %+v, want %+v", got, b)
		}
		log, err := r.s.Audit(r.ctx, store.AuditQuery{Limit: 10})
		r.ok(err)
		if len(log) != 1 || log[0].ID != "audit_1" {
			t.Errorf("got audit %+v, want the one of the change that was made", log)
		}
	})
}

// artifactUndo checks that an undo restores the artifact exactly, including its revision and a generation that had been
// displaced, even if the store stops after the operation or after the undo.
func artifactUndo(t *testing.T, r *rig) {
	r.session("sess_1")
	for i := range 3 {
		code := fmt.Sprintf("package tool // %d", i)
		g := &agent.Generation{ID: fmt.Sprint("gen-", i+1), Trigger: "regenerate:test", Code: code,
			CodeChecksum: agent.Checksum(code)}
		c := r.call("sess_1")
		c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: r.clock.now(), Generation: g,
			Result: agent.ClassOK, SessionID: "sess_1"}}
		r.commit(c)
	}
	read := func() (*agent.Artifact, string) {
		t.Helper()
		a, err := r.s.Artifact(r.ctx, "calculator", "add")
		r.ok(err)
		text, err := json.Marshal(a)
		r.ok(err)
		return a, string(text)
	}
	was, before := read()
	own := agent.Generation{ID: was.NextGenerationID(), Trigger: "operator:put", Code: "package tool // own",
		CodeChecksum: agent.Checksum("package tool // own")}
	for i, change := range []agent.ArtifactChange{{ResetMetrics: true, State: agent.StateDurable}, {Generation: &own}} {
		change.Role, change.MethodName, change.At = "calculator", "add", r.clock.now()
		_, err := r.s.ChangeArtifact(r.ctx, was.Revision, change, &agent.AuditEntry{ID: fmt.Sprint("act_", i)})
		r.ok(err)
		var now *agent.Artifact
		after := ""
		r.everyWay(func() {
			a, text := read()
			if after == "" {
				now, after = a, text
			}
			if text != after {
				t.Errorf("change %d: got\n%.3000s\nafter\n%.3000s", i, text, after)
			}
		})
		revert := &agent.Revert{From: *now.Standing(), To: *was.Standing()}
		_, err = r.s.ChangeArtifact(r.ctx, now.Revision, agent.ArtifactChange{Role: "calculator", MethodName: "add",
			At: r.clock.now(), Revert: revert}, &agent.AuditEntry{ID: fmt.Sprint("undo_", i)})
		r.ok(err)
		r.everyWay(func() {
			if _, text := read(); text != before {
				t.Errorf("undo %d: got\n%.3000s\nbefore\n%.3000s", i, text, before)
			}
		})
	}
}

// artifactGone checks that a call's result does not bring back a deleted artifact.
func artifactGone(t *testing.T, r *rig) {
	r.session("sess_1")
	c := r.call("sess_1")
	c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", Result: agent.ClassOK}}
	r.commit(c) // an operator deleted the artifact while the call ran
	r.everyWay(func() {
		if _, err := r.s.Artifact(r.ctx, "calculator", "add"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		r.records("sess_1")
	})
}

// programs checks that a program is found by its checksum only.
func programs(t *testing.T, r *rig) {
	code := "package tool // add"
	r.forge("calculator", "add", code)
	r.everyWay(func() {
		if got, err := r.s.Program(r.ctx, agent.Checksum(code)); err != nil || got != code {
			t.Errorf("got %q, %v", got, err)
		}
		for _, sum := range []string{"", "sha256:", "sha256:../../etc/passwd", agent.Checksum("other")} {
			if _, err := r.s.Program(r.ctx, sum); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("checksum %q: got %v, want ErrNotFound", sum, err)
			}
		}
	})
}

// oddNames checks that names which are special to file systems or to a store's own files work like any other, and do
// not collide.
func oddNames(t *testing.T, r *rig) {
	names := []string{"movie finder", "Movie Finder", "movie_finder", "ünïcode 🙂", "archive", "registry",
		"registry.json", "index", "CON", strings.Repeat("ä", 200), "a.b", ".hidden", "-x", "x?", "x*"}
	for _, n := range names {
		r.forge(n, n, "package tool // "+n)
		_, err := r.s.PutTool(r.ctx, agent.Tool{Role: n}, 0, nil)
		r.ok(err)
	}
	r.everyWay(func() {
		for _, n := range names {
			a, err := r.s.Artifact(r.ctx, n, n)
			if err != nil || a.Role != n || a.MethodName != n || a.Code != "package tool // "+n {
				t.Errorf("%q: got %v, %v", n, a, err)
			}
			if list, err := r.s.ListArtifacts(r.ctx, n); err != nil || len(list) != 1 {
				t.Errorf("list of %q: got %v, %v", n, list, err)
			}
			if tool, err := r.s.Tool(r.ctx, n); err != nil || tool.Role != n {
				t.Errorf("tool %q: got %v, %v", n, tool, err)
			}
		}
	})
}

// watch checks that each watcher is notified of changes until it stops.
func watch(t *testing.T, r *rig) {
	got, others := make(chan store.Change, 10), make(chan store.Change, 10)
	stop := r.watch(r.store, "", func(c store.Change) { got <- c })
	defer r.watch(r.store, "", func(c store.Change) { others <- c })()
	want := func(kind, role, method string) {
		t.Helper()
		select {
		case c := <-got:
			if c.Kind != kind || c.Role != role || c.Method != method {
				t.Errorf("got %+v, want %s %s %s", c, kind, role, method)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the change of %s %s.%s was not reported", kind, role, method)
		}
	}
	r.forge("calculator", "add", "x")
	want("artifact", "calculator", "add")
	_, err := r.s.PutTool(r.ctx, agent.Tool{Role: "finder"}, 0, nil)
	r.ok(err)
	want("tool", "finder", "")
	r.ok(r.s.SetPolicy(r.ctx, agent.DefaultPolicy(), store.AnyRevision, nil))
	want("policy", "", "")
	stop()
	r.ok(r.s.SetPolicy(r.ctx, agent.DefaultPolicy(), store.AnyRevision, nil))
	if len(got) != 0 {
		t.Errorf("a change was reported after stop: %+v", <-got)
	}
	if len(others) != 4 {
		t.Errorf("got %d changes for the watcher that stayed, want 4", len(others))
	}
}

// closeTwice checks that a closed store rejects writes and that Close may be repeated.
func closeTwice(t *testing.T, r *rig) {
	r.session("sess_1")
	r.ok(r.store.Ready())
	r.ok(r.store.Close(r.ctx))
	r.ok(r.store.Close(r.ctx))
	if err := r.s.CommitCall(r.ctx, r.call("sess_1")); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("commit after Close: got %v, want ErrReadOnly", err)
	}
	if r.store.Ready() == nil {
		t.Error("a closed store says it is ready")
	}
}

// madeFor checks that a program keeps the wording it was made for, and the wordings that it was checked for, whichever
// change sets them.
func madeFor(t *testing.T, r *rig) {
	at := r.clock.now().UTC()
	g := NewGeneration("gen-1", "package tool", at)
	g.MadeFor = &agent.MadeFor{Wording: agent.Wording{Purpose: "a", Acceptance: json.RawMessage(`["b"]`),
		FailurePolicy: json.RawMessage(`{"c":1}`)}, Digest: "a.b.c", ByPerson: "a.b.c"}
	g.Breaks = []string{"ex_1"}
	g.CallersContract, g.Asked = true, &agent.Contract{Deliverable: json.RawMessage(`{"type":"number"}`)}
	change := func(c agent.ArtifactChange) {
		c.Role, c.MethodName, c.At = "units", "convert", r.clock.now()
		_, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, c, nil)
		r.ok(err)
	}
	wants := func(want string) {
		t.Helper()
		r.everyWay(func() {
			a, err := r.s.Artifact(r.ctx, "units", "convert")
			r.ok(err)
			if got := a.Current(); fmt.Sprintf("%s %s %v", agent.Encoded(got.MadeFor), got.Confirmed,
				got.Breaks) != want {
				t.Errorf("got %s %s %v, want %s", agent.Encoded(got.MadeFor), got.Confirmed, got.Breaks, want)
			}
			if got := string(agent.Encoded(
				a.Current().Asked)); got != `{"deliverable":{"type":"number"}}` || !a.Current().CallersContract {
				t.Errorf("it was made for the contract %s of a call", got)
			}
		})
	}
	change(agent.ArtifactChange{Generation: g})
	wants(`{"purpose":"a","acceptance":["b"],"failure_policy":{"c":1},"digest":"a.b.c","by_person":"a.b.c"}  [ex_1]`)
	change(agent.ArtifactChange{Reworded: &agent.Rewording{Of: "gen-1",
		For: agent.MadeFor{Wording: agent.Wording{Purpose: "d"}, Digest: "d..", ByPerson: "d..", Checked: &at}},
		Confirm: "e.."})
	checked := `{"purpose":"d","digest":"d..","by_person":"d..","before":["a.b.c"],"checked_at":` +
		string(agent.Encoded(at)) + `} e.. [ex_1]`
	wants(checked)
	change(agent.ArtifactChange{Result: agent.ClassOK}) // changes only the counters
	wants(checked)
}

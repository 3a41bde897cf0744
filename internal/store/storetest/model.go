package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// model applies the same random operations to the store and to a fresh Memory, and compares everything that can
// be read from both. Now and then it stops or kills the store.
func model(t *testing.T, r *rig) {
	memory := NewMemory(r.clock.now)
	twin := Default(t, memory)
	random := rand.New(rand.NewPCG(1, 2))
	live := map[string]bool{}
	pick := func(n int) int { return random.IntN(n) }
	var done []string // operations since the last comparison
	both := func(what string, do func(store.Namespace) error) {
		t.Helper()
		a, b := do(r.s), do(twin)
		done = append(done, fmt.Sprint(what, " ", a))
		if fmt.Sprint(a == nil) != fmt.Sprint(b == nil) {
			t.Fatalf("%s: the store says %v, the twin %v", what, a, b)
		}
	}
	for step := range 400 {
		r.clock.advance(time.Duration(pick(600)) * time.Second)
		id, method := fmt.Sprintf("sess_%d", pick(6)), fmt.Sprint("m", pick(4))
		switch pick(20) {
		case 0, 1:
			if !live[id] {
				live[id] = true
				both("create", func(s store.Namespace) error {
					return s.CreateSession(r.ctx, agent.Session{ID: id, Role: "calculator", CreatedAt: r.clock.now(),
						UpdatedAt: r.clock.now()}, nil)
				})
			}
		case 2:
			delete(live, id)
			both("delete "+id, func(s store.Namespace) error { return s.DeleteSession(r.ctx, id, nil) })
		case 3:
			both("put tool", func(s store.Namespace) error {
				_, err := s.PutTool(r.ctx, agent.Tool{Role: "role" + method,
					Contract: agent.Contract{Purpose: fmt.Sprint(step)}}, store.AnyRevision, nil)
				return err
			})
		case 4:
			targets := []store.Target{{Role: "calculator", Method: method}}
			both("archive "+method, func(s store.Namespace) error {
				return s.Archive(r.ctx, targets, agent.AuditEntry{ID: fmt.Sprint("audit_", step)})
			})
		case 5:
			targets := []store.Target{{Role: "calculator", Method: method}}
			both("restore "+method, func(s store.Namespace) error {
				return s.Restore(r.ctx, targets, agent.AuditEntry{ID: fmt.Sprint("audit_", step)})
			})
		case 6:
			if r.h.Reopen != nil {
				kill := pick(2) == 0
				done = append(done, fmt.Sprint("reopen, kill ", kill))
				r.use(r.h.Reopen(t, r.store, kill))
			}
		case 7:
			both("context", func(s store.Namespace) error {
				_, err := s.ChangeContext(r.ctx, id, 0,
					agent.ContextChange{Set: map[string]json.RawMessage{"patched": json.RawMessage(fmt.Sprint(step))},
						Delete: []string{"last"}}, nil)
				return err
			})
		default:
			kind := pick(4)
			both(fmt.Sprint("call ", kind, " ", id, " ", method), func(s store.Namespace) error {
				c := NewCommit(id, fmt.Sprintf("call_%05d", step), r.clock.now())
				c.Record.MethodName, c.Log.Method = method, method
				c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"last": json.RawMessage(fmt.Sprint(
					step))}}
				c.Tools = []store.ToolChange{{Role: "role" + method, At: r.clock.now(), Used: 1}}
				change := agent.ArtifactChange{Role: "calculator", MethodName: method, At: r.clock.now(),
					Result: agent.ClassOK, SessionID: id}
				if kind == 0 {
					change.Generation = NewGeneration(fmt.Sprintf("gen-%d", step), fmt.Sprint("package tool // ", step),
						r.clock.now())
					change.Fixture = &agent.Fixture{CallID: c.Record.CallID, SessionID: id,
						Value: json.RawMessage(fmt.Sprint(step))}
				}
				c.Artifacts = []agent.ArtifactChange{change}
				c.Pattern = &agent.PatternEvent{CallID: c.Record.CallID, SessionID: id, Role: "calculator"}
				c.Content = &store.Content{Ref: fmt.Sprint("content:", step%40),
					Value: json.RawMessage(fmt.Sprint(step))}
				return s.CommitCall(r.ctx, c)
			})
		}
		if step%40 == 39 {
			if a, b := Dump(t, r.store, r.clock.now()), Dump(t, memory, r.clock.now()); a != b {
				t.Fatalf("after step %d the store and its twin differ: %s\nafter %s", step, Difference(a, b),
					strings.Join(done, "\n"))
			}
			done = nil
		}
	}
}

// Dump returns everything that can be read of the namespaces as text, or of the default namespace if none is named. It
// expects calls like those of NewCommit.
func Dump(t testing.TB, s store.Store, now time.Time, names ...agent.Namespace) string {
	t.Helper()
	if len(names) == 0 {
		names = []agent.Namespace{agent.DefaultNamespace}
	}
	out := map[string]any{"states": s.Stats().Artifacts}
	for _, name := range names {
		n, err := s.Namespace(name)
		if err != nil {
			t.Fatal(err)
		}
		out[string(name)] = dump(t, n, now)
		Chained(t, name, n)
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dump returns the content of a namespace. It clears what may differ between stores.
func dump(t testing.TB, s store.Namespace, now time.Time) map[string]any {
	t.Helper()
	ctx := context.Background()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]any{}
	sessions, err := s.ListSessions(ctx, "", 100)
	ok(err)
	out["sessions"] = sessions
	for _, x := range sessions {
		values, err := s.Context(ctx, x.ID)
		ok(err)
		out["context "+x.ID], out["history "+x.ID] = values, Records(t, s, x.ID)
	}
	list, err := s.ListArtifacts(ctx, "calculator")
	ok(err)
	tools, err := s.ListTools(ctx, "", 100)
	ok(err)
	ranks, err := s.RankTools(ctx, now, 100)
	ok(err)
	patterns, err := s.Patterns(ctx, "calculator")
	ok(err)
	log, err := s.ListCalls(ctx, store.CallQuery{Limit: 1000})
	ok(err)
	for i := range log {
		if len(log[i].Args) == 0 {
			log[i].Args, log[i].Kwargs = nil, nil // if erased, stores may return [] or null
		}
	}
	out["connections"], err = s.ListConnections(ctx)
	ok(err)
	out["spent"], err = s.Spent(ctx, 0, math.MaxInt32)
	ok(err)
	out["stored"] = listStored(t, s)
	audits, err := s.Audit(ctx, store.AuditQuery{Limit: 1000})
	ok(err)
	for i := range audits {
		a := &audits[i]
		a.Salt, a.Digest, a.PrevHash, a.Hash = "", "", "", "" // the salt is random
	}
	out["artifacts"], out["tools"], out["ranks"], out["patterns"], out["log"], out["audit"] = list, tools, ranks,
		patterns, log, audits
	files, err := s.ListFiles(ctx, "", "", 100)
	ok(err)
	out["files"] = files
	for _, f := range files {
		text, err := fileText(s, f)
		ok(err)
		out["text of "+f.ID] = text
	}
	for i := range 40 {
		v, _ := s.Content(ctx, fmt.Sprint("content:", i))
		out[fmt.Sprint("content ", i)] = v
	}
	return out
}

// Difference returns the first lines that differ between two dumps.
func Difference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			from := max(0, i-6)
			return fmt.Sprintf("line %d: got\n%s\nwant\n%s", i, strings.Join(a[from:min(len(a), i+6)], "\n"),
				strings.Join(b[from:min(len(b), i+6)], "\n"))
		}
	}
	return "nothing"
}

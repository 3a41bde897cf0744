package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// step is one step of a script. A step without do is a step of the flusher.
type step struct {
	name  string
	in    agent.Namespace
	do    func(store.Namespace) error
	whole func(store.Store) error // instead of do, for operations on the whole store
	files func(*Store) error
	// whether the step is a call that is applied before it is synced; if neither its sync nor a new segment succeeds,
	// recovery decides whether it is kept
	late bool
}

// to applies the step to a store.
func (s *step) to(t testing.TB, whole store.Store) error {
	t.Helper()
	if s.whole != nil {
		return s.whole(whole)
	}
	n, err := whole.Namespace(s.in)
	if err != nil {
		t.Fatal(err)
	}
	return s.do(n)
}

// other is a namespace other than the default one.
const other = agent.Namespace("acme")

// scripter writes a script.
type scripter struct {
	steps []step
	in    agent.Namespace
	calls int
	audit int
	now   func() time.Time
}

func (w *scripter) add(name string, do func(context.Context, store.Namespace) error) {
	w.steps = append(w.steps, step{name: string(w.in) + " " + name, in: w.in,
		do: func(n store.Namespace) error { return do(context.Background(), n) }})
}

func (w *scripter) sync() { w.steps = append(w.steps, step{name: "sync", files: (*Store).Sync}) }

func (w *scripter) checkpoint() {
	w.steps = append(w.steps, step{name: "checkpoint", files: (*Store).checkpoint})
}

// ownerOf returns the owner of a session.
func ownerOf(session string) string {
	if session == "sess_2" {
		return "ann"
	}
	return ""
}

func (w *scripter) create(id string) {
	w.add("create "+id, func(ctx context.Context, n store.Namespace) error {
		return n.CreateSession(ctx, agent.Session{ID: id, Role: "calculator", Owner: ownerOf(id), CreatedAt: w.now(),
			UpdatedAt: w.now()}, map[string]json.RawMessage{"first": json.RawMessage("1")})
	})
}

// call runs a method of calculator. gen is the generation that is forged for it; "" means a warm call.
func (w *scripter) call(session, method, gen string) {
	w.calls++
	id := fmt.Sprintf("call_%04d", w.calls)
	w.add("call "+id, func(ctx context.Context, n store.Namespace) error {
		c := storetest.NewCommit(session, id, w.now())
		c.Record.MethodName, c.Log.Method, c.Log.Owner = method, method, ownerOf(session)
		c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"last": json.RawMessage(`"` + id + `"`)}}
		c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: method, At: w.now(),
			Result: agent.ClassOK, SessionID: session}}
		c.Tools = []store.ToolChange{{Role: "calculator", At: w.now(), Used: 1,
			Register: &agent.Contract{Purpose: "sums"}, IfAbsent: true}}
		c.Pattern = &agent.PatternEvent{CallID: id, SessionID: session, Role: "calculator", MethodName: method}
		c.Content = &store.Content{Ref: "content:" + id[len(id)-1:], Value: json.RawMessage(`"` + id + `"`)}
		if gen != "" {
			c.Artifacts[0].Generation = storetest.NewGeneration(gen, "package tool // "+gen+id, w.now())
			c.Artifacts[0].Generation.Owner = ownerOf(session)
			c.Artifacts[0].Fixture = &agent.Fixture{CallID: id, SessionID: session, Owner: ownerOf(session),
				Args: c.Record.Args, Value: c.Outcome.Value}
		}
		return n.CommitCall(ctx, c)
	})
}

// move archives, restores or removes a method of calculator, or the whole role if method is "".
func (w *scripter) move(kind, method string) {
	w.audit++
	targets, audit := []store.Target{{Role: "calculator", Method: method}},
		agent.AuditEntry{ID: fmt.Sprint("audit_", w.audit)}
	w.add(kind+" "+method, func(ctx context.Context, n store.Namespace) error {
		switch kind {
		case "archive":
			return n.Archive(ctx, targets, audit)
		case "restore":
			return n.Restore(ctx, targets, audit)
		}
		return n.Remove(ctx, targets, audit)
	})
}

// connect stores a connection with that sealed secret.
func (w *scripter) connect(name, sealed string) {
	w.add("connect "+name, func(ctx context.Context, n store.Namespace) error {
		c := agent.Connection{Name: name, Hosts: []string{"api.example.org"},
			Auth: agent.ConnectionAuth{Type: agent.AuthBearer, Sealed: []byte(sealed)}}
		_, err := n.PutConnection(ctx, c, store.AnyRevision, &agent.AuditEntry{ID: "audit_" + name + sealed})
		return err
	})
}

// reserve reserves the cost of a model request; settle settles it.
func (w *scripter) reserve(id string) {
	w.add("reserve "+id, func(ctx context.Context, n store.Namespace) error {
		return n.Reserve(ctx, agent.Spend{ID: id, Day: agent.DayOf(w.now()), Role: "calculator", Method: "add",
			Model: "m", Tokens: agent.Tokens{Requests: 1, Prompt: 100, Completion: 100, Estimated: 200}})
	})
}

func (w *scripter) settle(id string) {
	w.add("settle "+id, func(ctx context.Context, n store.Namespace) error {
		return n.Settle(ctx, agent.Spend{ID: id, Day: agent.DayOf(w.now()), Role: "calculator", Method: "add",
			Model: "m", Tokens: agent.Tokens{Requests: 1, Prompt: 10, Completion: 5}})
	})
	w.steps[len(w.steps)-1].late = true
}

func (w *scripter) remove(id string) {
	w.add("delete "+id, func(ctx context.Context, n store.Namespace) error { return n.DeleteSession(ctx, id, nil) })
}

// file adds a file, by itself or with a call.
func (w *scripter) file(id, session string) {
	w.add("file "+id, func(ctx context.Context, n store.Namespace) error {
		f, err := storetest.NewFile(n, agent.File{ID: id, SessionID: session}, id+"\nof "+session+"\n")
		if err != nil {
			return err
		}
		if session == "" {
			return n.AddFile(ctx, f)
		}
		c := storetest.NewCommit(session, "call_of_"+id, w.now())
		c.Log.Owner = ownerOf(session)
		c.Files = []store.NewFile{f}
		return n.CommitCall(ctx, c)
	})
	w.steps[len(w.steps)-1].late = session != ""
}

// deleteFile deletes a file.
func (w *scripter) deleteFile(id string) {
	w.add("delete "+id, func(ctx context.Context, n store.Namespace) error { return n.DeleteFile(ctx, id, nil) })
}

// script covers everything that a store writes.
func script(now func() time.Time) []step {
	w := &scripter{in: agent.DefaultNamespace, now: now}
	w.create("sess_1")
	w.call("sess_1", "add", "gen-1")
	w.create("sess_2")
	w.call("sess_2", "add", "")
	w.file("file_1", "")
	w.sync()
	w.call("sess_1", "sub", "gen-1")
	w.call("sess_2", "sub", "")
	w.add("policy", func(ctx context.Context, n store.Namespace) error {
		p := agent.DefaultPolicy()
		p.RepairEnabled = false
		return n.SetPolicy(ctx, p, store.AnyRevision, &agent.AuditEntry{ID: "audit_policy"})
	})
	w.connect("weather", "one")
	w.reserve("spend_1")
	w.reserve("spend_2")
	w.checkpoint()
	w.settle("spend_1")
	w.reserve("spend_3")
	w.connect("weather", "two")
	w.connect("mail", "one")
	w.call("sess_1", "add", "")
	w.call("sess_2", "add", "gen-2")
	w.add("context", func(ctx context.Context, n store.Namespace) error {
		_, err := n.ChangeContext(ctx, "sess_2", 0,
			agent.ContextChange{Set: map[string]json.RawMessage{"patched": json.RawMessage("true")},
				Delete: []string{"first"}}, nil)
		return err
	})
	w.add("examples", func(ctx context.Context, n store.Namespace) error {
		list := []agent.Example{{ID: "ex_1", By: "ben", Args: []json.RawMessage{json.RawMessage(`"<1>"`)},
			Expect: agent.Expectation{Value: json.RawMessage(`{"sum": 1}`)}, State: agent.ExampleActive}}
		_, err := n.ChangeArtifact(ctx, store.AnyRevision, agent.ArtifactChange{Role: "calculator", MethodName: "add",
			At: w.now(), Examples: &list}, nil)
		return err
	})
	w.add("drop of an example", func(ctx context.Context, n store.Namespace) error {
		_, err := n.ChangeArtifact(ctx, store.AnyRevision, agent.ArtifactChange{Role: "calculator", MethodName: "add",
			At: w.now(), DropExample: "ex_1"}, nil)
		return err
	})
	w.add("disconnect mail", func(ctx context.Context, n store.Namespace) error {
		return n.DeleteConnection(ctx, "mail", store.AnyRevision, &agent.AuditEntry{ID: "audit_disconnect"})
	})
	w.settle("spend_3")
	w.sync()
	w.file("file_3", "")
	w.deleteFile("file_1")
	w.move("archive", "sub")
	w.call("sess_1", "sub", "")
	w.sync()
	w.move("restore", "sub")
	w.sync()
	w.call("sess_1", "sub", "")
	w.remove("sess_2")
	w.call("sess_1", "add", "")
	w.move("archive", "")
	w.checkpoint()
	w.move("restore", "")
	w.call("sess_1", "add", "")
	w.move("remove", "sub")
	w.call("sess_1", "sub", "gen-1")
	w.sync()
	w.call("sess_1", "sub", "")
	w.checkpoint()
	w.call("sess_1", "add", "")
	// An older program is restored in place of a newer one that was archived.
	w.move("archive", "add")
	w.checkpoint()
	w.call("sess_1", "add", "gen-1")
	w.sync()
	w.move("remove", "add")
	w.move("restore", "add")
	w.sync()
	w.call("sess_1", "sub", "")
	return w.steps
}

// scriptOfTwo is script interleaved with steps in another namespace, in which all names are the same.
func scriptOfTwo(now func() time.Time) []step {
	w := &scripter{in: other, now: now}
	w.create("sess_1")
	w.call("sess_1", "add", "gen-1")
	w.create("sess_2")
	w.call("sess_2", "sub", "gen-1")
	w.file("file_1", "sess_1")
	w.move("archive", "add")
	w.file("file_2", "sess_2")
	w.call("sess_2", "sub", "")
	w.move("restore", "add")
	w.remove("sess_2")
	w.call("sess_1", "add", "")
	base := script(now)
	out := []step{}
	for i, s := range base {
		out = append(out, s)
		if at := i / 3; i%3 == 2 && at < len(w.steps) {
			out = append(out, w.steps[at])
		}
	}
	return out
}

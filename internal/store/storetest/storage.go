package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// listStored returns the sums of all owners, read page by page. It checks that Stored agrees for each of them.
func listStored(t testing.TB, s store.Namespace) (all []store.OwnerBytes) {
	t.Helper()
	ctx, total := context.Background(), store.Bytes{}
	for after := ""; ; after = all[len(all)-1].Owner {
		page, err := s.ListStored(ctx, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page...); len(page) < 2 {
			break
		}
	}
	for _, o := range all {
		total.Add(o.Bytes)
		if got, err := s.Stored(ctx, o.Owner); err != nil || got.Own != o.Bytes {
			t.Fatalf("%s has %+v, %v; the list says %+v", o.Owner, got.Own, err, o.Bytes)
		}
	}
	if got, err := s.Stored(ctx, "nobody"); err != nil || got.All != total || got.Own != (store.Bytes{}) {
		t.Fatalf("all have %+v, %v; in sum they have %+v", got, err, total)
	}
	return all
}

// owned creates a session of the owner, and returns the commit of a call in it.
func (r *rig) owned(owner, session string) *store.CallCommit {
	r.Helper()
	if _, err := r.s.Session(r.ctx, session); err != nil {
		r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: session, Role: "calculator", Owner: owner,
			CreatedAt: r.clock.now(), UpdatedAt: r.clock.now()}, nil))
	}
	c := r.call(session)
	c.Log.Owner = agent.LoggedOwner(owner)
	return c
}

// grew checks by how much the owner's sums have changed since the last call, and that nobody else's have.
func (r *rig) grew(what, owner string, before *[]store.OwnerBytes, want store.Bytes) {
	r.Helper()
	was := *before
	find := func(list []store.OwnerBytes, owner string) store.Bytes {
		for _, o := range list {
			if o.Owner == owner {
				return o.Bytes
			}
		}
		return store.Bytes{}
	}
	r.everyWay(func() {
		now := listStored(r.T, r.s)
		if got := find(now, owner).Minus(find(was, owner)); got != want {
			r.Errorf("%s: %s has %+v more, want %+v", what, owner, got, want)
		}
		for _, o := range append(now, was...) {
			if o.Owner != owner && find(now, o.Owner) != find(was, o.Owner) {
				r.Errorf("%s: %s has %+v, had %+v", what, o.Owner, find(now, o.Owner), find(was, o.Owner))
			}
		}
		*before = now
	})
}

// recordOf returns the length of a session's newest record.
func (r *rig) recordOf(session string) int64 {
	r.Helper()
	page, err := r.s.History(r.ctx, session, store.HistoryQuery{Limit: 1, Desc: true})
	r.ok(err)
	return int64(len(page.Records[0]))
}

// stored checks that each kind of data counts for its owner, and is subtracted when it is deleted.
func stored(t *testing.T, r *rig) {
	ann := r.owned("ann", "sess_ann")
	r.ok(r.s.CreateSession(r.ctx, agent.Session{ID: "sess_ben", Role: "calculator", Owner: "ben",
		CreatedAt: r.clock.now(), UpdatedAt: r.clock.now()}, map[string]json.RawMessage{"a": json.RawMessage(`"1"`)}))
	anns := listStored(t, r.s)
	r.commit(ann)
	r.grew("a call", "ann", &anns, store.Bytes{Histories: r.recordOf("sess_ann"),
		Values: int64(len(agent.Encoded(ann.Outcome)) + len(ann.Effects))})

	ben := r.owned("ben", "sess_ben")
	ben.Log.SystemPrompt, ben.Log.Context = "be plain", json.RawMessage(`{}`)
	ben.Key, ben.Reply = &store.Idempotent{Key: "k", CallID: ben.Log.CallID}, json.RawMessage(`{"reply":1}`)
	ben.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"a": json.RawMessage(`"123"`),
		"bb": json.RawMessage(`4`)}}
	r.commit(ben)
	values := int64(len(agent.Encoded(ben.Outcome))+len(ben.Effects)) + int64(len(`be plain{}{"reply":1}`))
	r.grew("a call with debug, a key and a context", "ben", &anns,
		store.Bytes{Contexts: 2 + 3, Histories: r.recordOf("sess_ben"), Values: values})
	_, err := r.s.ChangeContext(r.ctx, "sess_ben", 0,
		agent.ContextChange{Set: map[string]json.RawMessage{"a": json.RawMessage(`5`)}, Delete: []string{"bb", "none"}},
		nil)
	r.ok(err)
	r.grew("a change of a context", "ben", &anns, store.Bytes{Contexts: -4 - 3})

	r.addFile(agent.File{ID: "file_1", Owner: "ann", SessionID: "sess_ann"}, "12345")
	r.grew("a file", "ann", &anns, store.FileBytes(&agent.File{Bytes: 5}))
	r.addFile(agent.File{ID: "part_1", Owner: "ann", SessionID: "sess_ann", Internal: true}, "123")
	r.grew("a large argument", "ann", &anns, store.Bytes{Histories: 3})
	r.addFile(agent.File{ID: "part_2", Owner: "ann", SessionID: "sess_ann", Internal: true,
		ExpiresAt: r.clock.now().Add(1e15)}, "1234567")
	r.grew("a large value", "ann", &anns, store.Bytes{Values: 7})
	r.ok(r.s.DeleteFile(r.ctx, "file_1", nil))
	r.grew("a file deleted", "ann", &anns, store.Bytes{}.Minus(store.FileBytes(&agent.File{Bytes: 5})))
	r.storedTools(&anns)

	r.ok(r.s.DeleteSession(r.ctx, "sess_ann", nil))
	r.ok(r.s.DeleteSession(r.ctx, "sess_ben", nil))
	r.everyWay(func() {
		for _, o := range listStored(t, r.s) {
			if o.Tools = 0; o.Bytes != (store.Bytes{}) {
				t.Errorf("without sessions: %+v", o)
			}
		}
	})
}

// storedTools checks the same for tools and examples.
func (r *rig) storedTools(before *[]store.OwnerBytes) {
	r.Helper()
	code := "package tool // 1"
	forged := Forged(r.owned("ann", "sess_ann"), code)
	forged.Artifacts[0].Generation.Owner = "ann"
	forged.Tools = []store.ToolChange{{Role: "calculator", At: r.clock.now(), Owner: "ann",
		Register: &agent.Contract{Purpose: "sums"}, IfAbsent: true}}
	was := *before
	r.commit(forged)
	first := store.Bytes{}
	store.ArtifactBytes((*agent.Artifact)(nil).Apply(forged.Artifacts[0]),
		func(_ string, b store.Bytes) { first.Add(b) })
	store.ToolBytes(&agent.Tool{Contract: agent.Contract{Purpose: "sums"}},
		func(_ string, b store.Bytes) { first.Add(b) })
	first.Histories, first.Values = r.recordOf("sess_ann"),
		int64(len(agent.Encoded(forged.Outcome))+len(forged.Effects))
	if first.Tools < int64(len(code)+len("sums")) {
		r.Errorf("a program and a role take %+v", first)
	}
	r.grew("a program", "ann", &was, first)

	fixture := agent.Fixture{CallID: "c", SessionID: "sess_ben", Owner: "ben",
		Args: []json.RawMessage{json.RawMessage(`"< >"`)}, Value: json.RawMessage(`{"a":  1}`)}
	change := func(what string, x agent.ArtifactChange, want store.Bytes) {
		r.Helper()
		x.Role, x.MethodName, x.At = "calculator", "add", r.clock.now()
		_, err := r.s.ChangeArtifact(r.ctx, store.AnyRevision, x, nil)
		r.ok(err)
		r.grew(what, "ben", &was, want)
	}
	change("a fixture", agent.ArtifactChange{Result: agent.ClassOK, Fixture: &fixture},
		store.Bytes{Tools: int64(len(`"\u003c \u003e"{"a":1}`))})
	change("a count", agent.ArtifactChange{Result: agent.ClassOK}, store.Bytes{})
	example := agent.Example{ID: "ex_1", By: "ben", Args: []json.RawMessage{json.RawMessage(`[1, 2]`)},
		Expect: agent.Expectation{Value: json.RawMessage(`3`)}, Note: strings.Repeat("n", 10),
		State: agent.ExampleActive}
	change("an example", agent.ArtifactChange{Example: &example}, store.Bytes{Examples: 256 + 10 + 5 + 1})
	change("the example dropped", agent.ArtifactChange{DropExample: "ex_1"}, store.Bytes{Examples: -256 - 10 - 5 - 1})

	tool, err := r.s.Tool(r.ctx, "calculator")
	r.ok(err)
	proposal := agent.ContractProposal{ID: "prop_1", Checked: "1",
		Contract: agent.Contract{Purpose: "sums", Deliverable: json.RawMessage(`{"type":"number"}`)}, Owner: "ben",
		By: "desk.ask", CreatedAt: r.clock.now().UTC()}
	tool.Proposals, _ = tool.Proposals.Add(proposal)
	tool, err = r.s.PutTool(r.ctx, tool, tool.Revision, nil)
	r.ok(err)
	r.grew("a proposed contract", "ben", &was, store.Bytes{Tools: 256 + 6 + 1 + 8 + 4 + 17})
	r.everyWay(func() {
		if kept, err := r.s.Tool(r.ctx, "calculator"); err != nil || kept.Proposals.Of("ben") == nil ||
			!bytes.Equal(agent.Encoded(kept.Proposals), agent.Encoded(tool.Proposals)) {
			r.Errorf("the tool has %+v, %v", kept.Proposals, err)
		}
	})
	tool.Proposals = nil
	_, err = r.s.PutTool(r.ctx, tool, store.AnyRevision, nil)
	r.ok(err)
	r.grew("no proposed contract", "ben", &was, store.Bytes{Tools: -(256 + 6 + 1 + 8 + 4 + 17)})

	targets := []store.Target{{Role: "calculator"}}
	gone := was
	r.ok(r.s.Archive(r.ctx, targets, agent.AuditEntry{ID: "audit_1"}))
	r.everyWay(func() {
		for _, o := range listStored(r.T, r.s) {
			if o.Tools != 0 || o.Examples != 0 {
				r.Errorf("%s has %+v of what was archived", o.Owner, o.Bytes)
			}
		}
	})
	r.ok(r.s.Restore(r.ctx, targets, agent.AuditEntry{ID: "audit_2", Undoes: "audit_1"}))
	r.grew("restored", "nobody", &gone, store.Bytes{})
	r.ok(r.s.Remove(r.ctx, targets, agent.AuditEntry{ID: "audit_3"}))
	*before = listStored(r.T, r.s)
}

// storedApart checks the sum of all other namespaces, which shrinks when one of them is erased.
func storedApart(t *testing.T, r *rig) {
	r.commit(r.owned("ann", "sess_1"))
	acme := r.in("acme")
	here := r.s
	r.s = acme
	r.commit(r.owned("ann", "sess_1"))
	r.addFile(agent.File{ID: "file_1", Owner: "ben"}, "12345")
	r.s = here
	check := func(erased bool) {
		r.Helper()
		one, err := r.s.Stored(r.ctx, "ann")
		r.ok(err)
		if one.Own != one.All || one.Own.Histories == 0 {
			t.Errorf("the default namespace has %+v, all of it ann's %+v", one.All, one.Own)
		}
		two, err := r.in("acme").Stored(r.ctx, "ann")
		r.ok(err)
		if one.Others != two.All || two.Others != one.All || erased != (two.All == store.Bytes{}) || !erased &&
			two.All.Files != store.FileBytes(&agent.File{Bytes: 5}).Files {
			t.Errorf("here %+v, there %+v", one, two)
		}
	}
	r.everyWay(func() { check(false) })
	r.ok(r.store.EraseNamespace(r.ctx, "acme", nil))
	r.everyWay(func() { check(true) })
}

package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// replica is one of several daemons over one store.
type replica struct {
	*runtime.Runtime
	op *operator.Operator
}

func newReplica(t *testing.T, s store.Store) *replica {
	t.Helper()
	box := &runtimetest.Box{Programs: map[string]runtimetest.Run{"one": runtimetest.Returns("1"),
		"weak": runtimetest.Returns(`{"status":"success_no_parse","movies":[]}`)}}
	o := env.DefaultOptions()
	o.Store, o.Shared, o.Sandbox, o.Provider = s, true, box,
		&runtimetest.Model{Programs: map[string][]string{"r.m": {"one"}, "finder.find": {"weak"}}}
	o.Metrics = telemetry.New(telemetry.NewRegistry(), telemetry.Build{})
	o.AllowImport = func(string) bool { return true }
	r, err := runtime.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Stop(context.Background()) })
	op, err := operator.New(operator.Options{Store: s, Shared: true, Sandbox: box, Calls: r, Secrets: fakeSecrets{},
		Metrics: o.Metrics})
	if err != nil {
		t.Fatal(err)
	}
	return &replica{r, op}
}

// call makes a call in a new session, and returns its id.
func (r *replica) call(t *testing.T) string {
	t.Helper()
	s, err := r.CreateSession(t.Context(), sessions.Request{Role: "r"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Call(t.Context(), runtime.CallRequest{SessionID: s.ID, Method: "m",
		Args: []json.RawMessage{json.RawMessage("1")}})
	if err != nil {
		t.Fatal(err)
	}
	return res.CallID
}

// follow reads the event feed after a call. The returned function stops it and returns the ids that came.
func (r *replica) follow(t *testing.T, after string) (stop func() []string) {
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var got []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.op.Events(ctx, operator.EventQuery{After: after}, func(e progress.Event) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, e.ID)
			return nil
		})
	}()
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		cancel()
		<-ended
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// The event feed of each replica has the calls of all, and a stream can be resumed at another replica.
func TestEventsOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		a, b := newReplica(t, s), newReplica(t, s)
		atA, atB := a.follow(t, ""), b.follow(t, "")
		var want []string
		for range 3 {
			want = append(want, a.call(t), b.call(t))
		}
		gotA, gotB := atA(), atB()
		if !slices.Equal(gotA, want) || !slices.Equal(gotB, want) {
			t.Errorf("got %v and %v, want %v of both", gotA, gotB, want)
		}
		want = append(want, b.call(t), a.call(t)) // while nobody listens
		atA = a.follow(t, want[2])
		want = append(want, b.call(t), a.call(t))
		if got := atA(); !slices.Equal(got, want[3:]) {
			t.Errorf("resumed at another replica: got %v, want %v", got, want[3:])
		}
	})
}

// advise makes the replica produce a recommendation, and returns its id.
func (r *replica) advise(t *testing.T) (id string) {
	t.Helper()
	session, err := r.CreateSession(t.Context(), sessions.Request{Role: "finder",
		Contract: &agent.Contract{Deliverable: json.RawMessage(`{"type":"object","required":["status","movies"]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 { // weak answers, and the question repeated
		if _, err := r.Call(t.Context(), runtime.CallRequest{SessionID: session.ID, Method: "find",
			Args: []json.RawMessage{json.RawMessage("1")}}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := r.op.Recommendations(t.Context(), "", nil)
	if err != nil || len(all) != 1 {
		t.Fatalf("the recommendations are %v (%v), want one", all, err)
	}
	return all[0].ID
}

// A decision about a recommendation at one replica, or its undo, applies at the others.
func TestAdviceOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewMemory(time.Now)
		a, b := newReplica(t, s), newReplica(t, s)
		id := a.advise(t)
		list := func(r *replica, status string) (ids []string) {
			t.Helper()
			all, err := r.op.Recommendations(t.Context(), status, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range all {
				ids = append(ids, x.ID)
			}
			return ids
		}
		holds := func(after string, open, dismissed, applied int) {
			t.Helper()
			for name, r := range map[string]*replica{"a": a, "b": b} {
				if x, y, z := len(list(r, "")), len(list(r, operator.AdviceDismissed)),
					len(list(r, operator.AdviceApplied)); x != open || y != dismissed || z != applied {
					t.Errorf("%s, at %s: %d open, %d dismissed, %d applied; want %d, %d, %d", after, name, x, y, z,
						open, dismissed, applied)
				}
				if n, err := r.op.OpenRecommendations(t.Context()); err != nil || n != open {
					t.Errorf("%s, at %s: %d are counted as open (%v), want %d", after, name, n, err, open)
				}
			}
		}
		holds("nothing decided", 1, 0, 0)
		decide := func(f func(context.Context, operator.AdviceDecision) (operator.Advice, error), undo bool) {
			t.Helper()
			if _, err := f(t.Context(), operator.AdviceDecision{ID: id, Actor: "ann", Undo: undo}); err != nil {
				t.Fatal(err)
			}
		}
		decide(a.op.DismissRecommendation, false)
		holds("dismissed at a", 0, 1, 0)
		if _, err := b.op.ApplyRecommendation(t.Context(), operator.AdviceDecision{ID: id,
			Actor: "ann"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("applied at b, dismissed at a: %v, want that there is none", err)
		}
		decide(b.op.DismissRecommendation, true)
		holds("taken back at b", 1, 0, 0)
		decide(b.op.ApplyRecommendation, false)
		holds("applied at b", 0, 0, 1)
		decide(a.op.ApplyRecommendation, true)
		holds("taken back at a", 1, 0, 0)
	})
}

// held delays additions to the audit trail until it is released.
type held struct {
	store.Store
	arrived atomic.Int32
	letGo   chan struct{}
}

func (h *held) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := h.Store.Namespace(name)
	return heldNamespace{n, h}, err
}

type heldNamespace struct {
	store.Namespace
	h *held
}

func (n heldNamespace) AppendAudit(ctx context.Context, e agent.AuditEntry) error {
	n.h.arrived.Add(1)
	<-n.h.letGo
	return n.Namespace.AppendAudit(ctx, e)
}

// Of two people who decide about the same recommendation at two replicas at the same moment, or undo a decision, one
// succeeds, and the other finds nothing to decide.
func TestDecisionsMeet(t *testing.T) {
	for _, undo := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := storetest.NewMemory(time.Now)
			h := &held{Store: s, letGo: make(chan struct{})}
			first := newReplica(t, s)
			id := first.advise(t)
			a, b := newReplica(t, h), newReplica(t, h)
			if undo {
				if _, err := first.op.DismissRecommendation(t.Context(),
					operator.AdviceDecision{ID: id, Actor: "ann"}); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 2)
			for _, r := range []*replica{a, b} {
				go func() {
					_, err := r.op.DismissRecommendation(t.Context(), operator.AdviceDecision{ID: id, Actor: "ann",
						Undo: undo})
					ended <- err
				}()
			}
			synctest.Wait()
			if n := h.arrived.Load(); n != 1 {
				t.Errorf("undo %v: %d decisions are written at once, want one", undo, n)
			}
			close(h.letGo)
			x, y := <-ended, <-ended
			if x != nil {
				x, y = y, x // either may be the last one to decide
			}
			if x != nil || !errors.Is(y, store.ErrNotFound) {
				t.Errorf("undo %v: the decisions ended in %v and %v, want success and that there is none", undo, x, y)
			}
		})
	}
}

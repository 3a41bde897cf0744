package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A racing store changes things between what an operation reads and what it writes.
type racing struct {
	store.Store
	behind func() // called after the next read
}

type racingNamespace struct {
	store.Namespace
	all *racing
}

func (r *racing) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := r.Store.Namespace(name)
	return &racingNamespace{n, r}, err
}

func (n *racingNamespace) passed() {
	if behind := n.all.behind; behind != nil {
		n.all.behind = nil
		behind()
	}
}

func (n *racingNamespace) Tool(ctx context.Context, role string) (agent.Tool, error) {
	defer n.passed()
	return n.Namespace.Tool(ctx, role)
}

func (n *racingNamespace) ListConnections(ctx context.Context) ([]agent.Connection, error) {
	defer n.passed()
	return n.Namespace.ListConnections(ctx)
}

func (n *racingNamespace) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	defer n.passed()
	return n.Namespace.Artifact(ctx, role, method)
}

// raced returns an operator on a racing store, and one of another replica on the plain store.
func raced(t *testing.T) (s *racing, op *operator.Operator, other *replica) {
	t.Helper()
	s = &racing{Store: storetest.NewMemory(time.Now)}
	other = newReplica(t, s.Store)
	op, err := operator.New(operator.Options{Store: s, Sandbox: &runtimetest.Box{}, Calls: other.Runtime,
		Secrets: fakeSecrets{}, Metrics: telemetry.New(telemetry.NewRegistry(), telemetry.Build{})})
	if err != nil {
		t.Fatal(err)
	}
	return s, op, other
}

// A person without the scope operate can withdraw only a proposal, even if it is accepted concurrently. Examples that
// one replica accepts or rejects stay so, even if another one replaces the list concurrently.
func TestDecisionsInTheSameMoment(t *testing.T) {
	t.Parallel()
	for _, accept := range []bool{true, false} {
		s, op, other := raced(t)
		propose := func() (id string, x agent.Example) {
			t.Helper()
			id = other.call(t)
			v, _, err := op.Judge(t.Context(), id, operator.Judgement{Verdict: agent.VerdictWrong,
				Expected: json.RawMessage("7"), Actor: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			list, err := op.Examples(t.Context(), "r", "m")
			if err != nil {
				t.Fatal(err)
			}
			return id, list[slices.IndexFunc(list, func(x agent.Example) bool { return x.ID == *v.ExampleID })]
		}
		active := func() (n int) {
			t.Helper()
			list, err := op.Examples(t.Context(), "r", "m")
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range list {
				if x.State == agent.ExampleActive {
					n++
				}
			}
			return n
		}
		want := 0
		if accept {
			want = 1
		}
		decide := func(x agent.Example) func() {
			return func() {
				if _, err := other.op.DecideExample(t.Context(), operator.ExampleDecision{Role: "r", Method: "m",
					ID: x.ID, Accept: accept, Actor: "op"}); err != nil {
					t.Error(err)
				}
			}
		}
		id, x := propose()
		s.behind = decide(x)
		if err := op.DropVerdict(t.Context(), id, "ann",
			false); accept != errors.Is(err, operator.ErrInForce) || !accept && err != nil {
			t.Errorf("accepted %v: taking it back ends in %v", accept, err)
		}
		if n := active(); n != want {
			t.Errorf("accepted %v, and taken back too late: %d active examples, want %d", accept, n, want)
		}
	}
}

// A put or delete without a precondition applies after concurrent changes: only one of two creates the resource, and
// the audit trail shows what each replaced. With a precondition the later one is refused.
func TestPutsThatMeet(t *testing.T) {
	t.Parallel()
	s, op, _ := raced(t)
	secret := "open sesame"
	putTool := func(purpose string, revision int64) (bool, error) {
		_, created, err := op.PutTool(t.Context(), operator.ToolPut{Role: "tax",
			Contract: agent.Contract{Purpose: purpose}, Revision: revision, Actor: "ann"})
		return created, err
	}
	putConnection := func(description string, revision int64) (bool, error) {
		c := weather("weather")
		c.Description = description
		_, created, err := op.PutConnection(t.Context(), operator.ConnectionPut{Connection: c, Secret: &secret,
			Revision: revision, Actor: "ann"})
		return created, err
	}
	for _, put := range []func(string, int64) (bool, error){putTool, putConnection} {
		var first bool
		s.behind = func() { first, _ = put("first", store.AnyRevision) }
		second, err := put("second", store.AnyRevision)
		if err != nil || !first || second {
			t.Errorf("both put: the first made it %v, the second %v, %v", first, second, err)
		}
		last, err := op.Audit(t.Context(), store.AuditQuery{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		var was struct{ Purpose, Description string }
		if err := json.Unmarshal(last[0].Before, &was); err != nil || was.Purpose+was.Description != "first" {
			t.Errorf("the audit trail says that %s was before", last[0].Before)
		}
		s.behind = func() { _, _ = put("third", store.AnyRevision) }
		if _, err := put("late", 2); !errors.Is(err, store.ErrConflict) {
			t.Errorf("too late: %v", err)
		}
	}
	s.behind = func() { _, _ = putConnection("fourth", store.AnyRevision) }
	if err := op.DeleteConnection(t.Context(), "weather", store.AnyRevision, "", "ann"); err != nil {
		t.Errorf("deleted while it was put: %v", err)
	}
}

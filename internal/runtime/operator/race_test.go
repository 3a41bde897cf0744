package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// A racing store has other people change things between what an operation reads and what it writes.
type racing struct {
	store.Store
	behind func() // after the next read
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

// Whoever puts or deletes without a precondition comes after what others did meanwhile: only one of two made the resource, and the audit trail shows
// what each replaced. With a precondition the one that comes too late is refused.
func TestPutsThatMeet(t *testing.T) {
	t.Parallel()
	s := &racing{Store: store.NewMemory(store.Options{})}
	calls := newReplica(t, s.Store).Runtime
	op, err := operator.New(operator.Options{Store: s, Sandbox: &runtimetest.Box{}, Calls: calls, Secrets: fakeSecrets{}, Metrics: telemetry.New(telemetry.NewRegistry(), telemetry.Build{})})
	if err != nil {
		t.Fatal(err)
	}
	secret := "open sesame"
	putTool := func(purpose string, revision int64) (bool, error) {
		_, created, err := op.PutTool(t.Context(), operator.ToolPut{Role: "tax", Contract: agent.Contract{Purpose: purpose}, Revision: revision, Actor: "ann"})
		return created, err
	}
	putConnection := func(description string, revision int64) (bool, error) {
		c := weather("weather")
		c.Description = description
		_, created, err := op.PutConnection(t.Context(), operator.ConnectionPut{Connection: c, Secret: &secret, Revision: revision, Actor: "ann"})
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

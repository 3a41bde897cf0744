package operator_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// paged notes where pages of the audit trail begin.
type paged struct {
	store.Store
	begin []string
}

type pagedNamespace struct {
	store.Namespace
	all *paged
}

func (p *paged) Namespace(name agent.Namespace) (store.Namespace, error) {
	n, err := p.Store.Namespace(name)
	return pagedNamespace{n, p}, err
}

func (n pagedNamespace) Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	n.all.begin = append(n.all.begin, q.Before)
	return n.Namespace.Audit(ctx, q)
}

// Earlier policies are read in pages that begin at a numbered entry, which the store finds without a search.
func TestPagesOfEarlierPolicies(t *testing.T) {
	t.Parallel()
	s := &paged{Store: storetest.NewMemory(time.Now)}
	r := newReplica(t, s.Store)
	op, err := operator.New(operator.Options{Store: s, Sandbox: &runtimetest.Box{}, Calls: r.Runtime,
		Secrets: fakeSecrets{}, Metrics: telemetry.New(telemetry.NewRegistry(), telemetry.Build{})})
	if err != nil {
		t.Fatal(err)
	}
	r.call(t)
	n, err := s.Store.Namespace(agent.DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	for range 501 {
		e := agent.AuditEntry{ID: ids.New("aud"), Timestamp: agent.FormatTime(time.Now()), Action: "tool.put"}
		if err := n.AppendAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	s.begin = nil
	if _, err := op.SimulatePolicy(t.Context(), operator.SimulationQuery{Patch: json.RawMessage(`{}`),
		Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if len(s.begin) != 2 || !strings.Contains(s.begin[1], "-") {
		t.Errorf("the pages begin at %q, want the second one at an entry with its number", s.begin)
	}
}

package trail

import (
	"context"
	"errors"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// refusing is a namespace whose trail can neither be read nor written while err is set.
type refusing struct {
	store.Namespace
	err error
}

func (r *refusing) Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	if r.err != nil {
		return nil, r.err
	}
	return r.Namespace.Audit(ctx, q)
}

func (r *refusing) AppendAudit(ctx context.Context, e agent.AuditEntry) error {
	if r.err != nil {
		return r.err
	}
	return r.Namespace.AppendAudit(ctx, e)
}

func put(all map[string]string, e agent.AuditEntry) {
	switch e.Action {
	case "put":
		all[e.Target] = e.Reason
	case "drop":
		delete(all, e.Target)
	}
}

// A ledger knows what the trail knows: in order, after a failure too, and nothing that could not be written.
func TestLedger(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &refusing{Namespace: storetest.Default(t, store.NewMemory(store.Options{})), err: errors.New("unreadable")}
	l := New(s, put)
	if err := l.Open(ctx); !errors.Is(err, s.err) {
		t.Fatalf("got %v", err)
	}
	s.err = nil
	for range 2 { // it is not locked after an error, nor after Close
		if err := l.Open(ctx); err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	if err := l.Open(ctx); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, e := range []agent.AuditEntry{{Action: "put", Target: "a", Reason: "1"}, {Action: "put", Target: "b", Reason: "2"}, {Action: "put", Target: "a", Reason: "3"}, {Action: "drop", Target: "b"}, {Action: "other", Target: "c"}} {
		e.ID = ids.New("audit")
		if err := l.Write(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	s.err = errors.New("read only")
	if err := l.Write(ctx, agent.AuditEntry{ID: "audit_x", Action: "put", Target: "d"}); !errors.Is(err, s.err) {
		t.Errorf("got %v", err)
	}
	s.err = nil
	again := New(s, put)
	if err := again.Open(ctx); err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for name, got := range map[string]map[string]string{"the ledger": l.All(), "a new one": again.All()} {
		if len(got) != 1 || got["a"] != "3" {
			t.Errorf("%s has %v", name, got)
		}
	}
}

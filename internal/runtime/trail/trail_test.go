package trail

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// refusing is a namespace whose trail cannot be read or written while err is set.
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

func (r *refusing) AuditHead(ctx context.Context) (chain.Head, error) {
	if r.err != nil {
		return chain.Head{}, r.err
	}
	return r.Namespace.AuditHead(ctx)
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

// A ledger knows exactly what the trail holds: in order, also after a failure, without entries that could not be
// written, and with entries that others wrote.
func TestLedger(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &refusing{Namespace: storetest.Default(t, storetest.NewMemory(time.Now)), err: errors.New("unreadable")}
	l := New(s, put, "put", "drop")
	if err := l.Open(ctx); !errors.Is(err, s.err) {
		t.Fatalf("got %v", err)
	}
	s.err = nil
	holds := func(l *Ledger[string], want map[string]string) {
		t.Helper()
		if err := l.Open(ctx); err != nil { // it is not locked after an error, nor after Close
			t.Fatal(err)
		}
		defer l.Close()
		if !maps.Equal(l.All(), want) {
			t.Errorf("the ledger has %v, want %v", l.All(), want)
		}
	}
	write := func(action, target, reason string) error {
		return s.AppendAudit(ctx, agent.AuditEntry{ID: ids.New("audit"), Action: action, Target: target,
			Reason: reason})
	}
	other := New(s, put, "put", "drop")
	holds(other, nil)
	for _, step := range []struct {
		action, target, reason string
		want                   map[string]string
	}{
		{"put", "a", "1", map[string]string{"a": "1"}},
		{"put", "b", "2", map[string]string{"a": "1", "b": "2"}},
		{"put", "a", "3", map[string]string{"a": "3", "b": "2"}},
		{"drop", "b", "", map[string]string{"a": "3"}},
		{"other", "c", "", map[string]string{"a": "3"}},
	} {
		if err := write(step.action, step.target, step.reason); err != nil {
			t.Fatal(err)
		}
		holds(l, step.want)
	}
	s.err = errors.New("read only")
	if err := write("put", "d", ""); !errors.Is(err, s.err) {
		t.Errorf("got %v", err)
	}
	if err := l.Open(ctx); !errors.Is(err, s.err) {
		t.Errorf("got %v", err)
	}
	s.err = nil
	for _, l := range []*Ledger[string]{l, other, New(s, put, "put", "drop")} {
		holds(l, map[string]string{"a": "3"})
	}
}

// A ledger starts over if the trail is not the one that it read: a database that lost its newest entries, or that was
// filled since.
func TestLedgerOfAnotherTrail(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	trails := map[string]store.Namespace{}
	for name, targets := range map[string][]string{"empty": nil, "long": {"a", "b"}, "short": {"c"},
		"as long": {"d", "e"}} {
		trails[name] = storetest.Default(t, storetest.NewMemory(time.Now))
		for _, target := range targets {
			if err := trails[name].AppendAudit(ctx, agent.AuditEntry{ID: ids.New("audit"), Action: "put",
				Target: target}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		before, after string
		want          map[string]string
	}{
		{"empty", "long", map[string]string{"a": "", "b": ""}},
		{"long", "short", map[string]string{"c": ""}},
		{"long", "as long", map[string]string{"d": "", "e": ""}},
	} {
		s := &refusing{Namespace: trails[step.before]}
		l := New(s, put)
		for _, s.Namespace = range []store.Namespace{trails[step.before], trails[step.after]} {
			if err := l.Open(ctx); err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
		if !maps.Equal(l.All(), step.want) {
			t.Errorf("%s, then %s: the ledger has %v, want %v", step.before, step.after, l.All(), step.want)
		}
	}
}

package operator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Actions of the audit trail that the ledger reads.
const (
	opRecommendationApply   = "recommendation.apply"
	opRecommendationDismiss = "recommendation.dismiss"
	opRecommendationUndo    = "recommendation.undo"
)

// A ledger holds what people decided about recommendations. The decisions stand in the audit trail, which is durable, and
// are read from it once. A decision is written to the trail first and to the ledger second, so the ledger never knows
// anything that a crash could take back.
type ledger struct {
	store store.Namespace

	mu       sync.Mutex         // held from open to close: while the trail is read and while a decision is written
	loaded   bool               // guarded by mu
	verdicts map[string]verdict // by recommendation id; guarded by mu
}

// A verdict is the last decision about a recommendation.
type verdict struct {
	advice Advice // as it was
	at     string
	before json.RawMessage // what applying it changed
}

// open locks the ledger and reads the trail if that has not happened yet; close unlocks it. After an error it is not locked.
func (l *ledger) open(ctx context.Context) error {
	l.mu.Lock()
	if l.loaded {
		return nil
	}
	entries, err := l.store.Audit(ctx, "", store.MaxTrail)
	if err != nil {
		l.mu.Unlock()
		return err
	}
	l.verdicts = map[string]verdict{}
	for _, e := range slices.Backward(entries) {
		l.apply(e)
	}
	l.loaded = true
	return nil
}

func (l *ledger) close() { l.mu.Unlock() }

// apply applies one audit entry. The caller holds the ledger.
func (l *ledger) apply(e agent.AuditEntry) {
	switch e.Action {
	case opRecommendationApply, opRecommendationDismiss:
		var a Advice
		if json.Unmarshal(e.After, &a) == nil {
			l.verdicts[e.Target] = verdict{a, e.Timestamp, e.Before}
		}
	case opRecommendationUndo:
		delete(l.verdicts, e.Target)
	}
}

// write makes a decision durable and applies it. The caller holds the ledger.
func (l *ledger) write(ctx context.Context, e agent.AuditEntry) error {
	if err := l.store.AppendAudit(ctx, e); err != nil {
		return err
	}
	l.apply(e)
	return nil
}

// decided returns a copy of the verdicts, for evaluations that take longer than others should wait.
func (l *ledger) decided(ctx context.Context) (map[string]verdict, error) {
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	defer l.close()
	return maps.Clone(l.verdicts), nil
}

// advices lists the verdicts of that status, by id.
func (l *ledger) advices(status string) []Advice {
	out := []Advice{}
	for _, v := range l.verdicts {
		if v.advice.Status == status {
			out = append(out, v.advice)
		}
	}
	slices.SortFunc(out, func(a, b Advice) int { return strings.Compare(a.ID, b.ID) })
	return out
}

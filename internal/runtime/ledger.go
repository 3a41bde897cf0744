package runtime

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
	actRecommendationApply   = "recommendation.apply"
	actRecommendationDismiss = "recommendation.dismiss"
	actRecommendationUndo    = "recommendation.undo"
	actSignaturePut          = "signature.put"
	actSignatureDelete       = "signature.delete"
)

// A ledger is what people decided about recommendations, and the signatures that they named: both stand in the audit
// trail, which is durable, and are read from it once. An act is first in the trail and then here, so that nothing is
// known that a crash could take back.
type ledger struct {
	store store.Namespace

	mu         sync.Mutex                // held from open to close: while the trail is read and while an act is written
	loaded     bool                      // guarded by mu
	verdicts   map[string]verdict        // by recommendation id; guarded by mu
	signatures map[string]NamedSignature // by name; guarded by mu
}

// A verdict is the last act on a recommendation.
type verdict struct {
	advice Advice // as it was
	at     string
	before json.RawMessage // what applying it changed
}

// maxTrail bounds how much of the audit trail is read: the newest acts.
const maxTrail = 1 << 20

// open locks the ledger and sees to it that the trail is read; close unlocks it. After an error it is not locked.
func (l *ledger) open(ctx context.Context) error {
	l.mu.Lock()
	if l.loaded {
		return nil
	}
	entries, err := l.store.Audit(ctx, "", maxTrail)
	if err != nil {
		l.mu.Unlock()
		return err
	}
	l.verdicts, l.signatures = map[string]verdict{}, map[string]NamedSignature{}
	for _, e := range slices.Backward(entries) {
		l.take(e)
	}
	l.loaded = true
	return nil
}

func (l *ledger) close() { l.mu.Unlock() }

// take applies one act. The caller holds the ledger.
func (l *ledger) take(e agent.AuditEntry) {
	switch e.Action {
	case actRecommendationApply, actRecommendationDismiss:
		var a Advice
		if json.Unmarshal(e.After, &a) == nil {
			l.verdicts[e.Target] = verdict{a, e.Timestamp, e.Before}
		}
	case actRecommendationUndo:
		delete(l.verdicts, e.Target)
	case actSignaturePut:
		var s NamedSignature
		if json.Unmarshal(e.After, &s) == nil {
			l.signatures[e.Target] = s
		}
	case actSignatureDelete:
		delete(l.signatures, e.Target)
	}
}

// write makes an act durable and takes it. The caller holds the ledger.
func (l *ledger) write(ctx context.Context, e agent.AuditEntry) error {
	if err := l.store.AppendAudit(ctx, e); err != nil {
		return err
	}
	l.take(e)
	return nil
}

// decided returns a copy of the verdicts, for those that think longer than others should wait.
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

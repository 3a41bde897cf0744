package operator

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Actions of the audit trail that the ledger of recommendations reads.
const (
	opRecommendationApply   = "recommendation.apply"
	opRecommendationDismiss = "recommendation.dismiss"
	opRecommendationUndo    = "recommendation.undo"
)

// A verdict is the last decision about a recommendation.
type verdict struct {
	advice Advice // as it was
	at     string
	before json.RawMessage // what applying it changed
}

// applyVerdict applies one audit entry to the verdicts, which are by recommendation id.
func applyVerdict(verdicts map[string]verdict, e agent.AuditEntry) {
	switch e.Action {
	case opRecommendationApply, opRecommendationDismiss:
		var a Advice
		if json.Unmarshal(e.After, &a) == nil {
			verdicts[e.Target] = verdict{a, e.Timestamp, e.Before}
		}
	case opRecommendationUndo:
		delete(verdicts, e.Target)
	}
}

// decided returns a copy of the verdicts, for evaluations that take longer than others should wait.
func (o *Operator) decided(ctx context.Context) (map[string]verdict, error) {
	if err := o.ledger.Open(ctx); err != nil {
		return nil, err
	}
	defer o.ledger.Close()
	return maps.Clone(o.ledger.All()), nil
}

// decideTTL is how long nobody decides about recommendations after a replica died that did.
const decideTTL = 15 * time.Second

// decide opens the ledger for a decision, and keeps it from others, those of other replicas too, until done is called.
func (o *Operator) decide(ctx context.Context) (done func(), err error) {
	release := func() {}
	if o.o.Shared {
		lease, err := o.store.Lease(ctx, "recommendations", store.LeaseOptions{TTL: decideTTL, Wait: true})
		if err != nil {
			return nil, err
		}
		release = lease.Release
	}
	if err := o.ledger.Open(ctx); err != nil {
		release()
		return nil, err
	}
	return func() {
		o.ledger.Close()
		release()
		o.advised.Ring()
	}, nil
}

// advices lists the verdicts of that status, by id. The caller holds the ledger.
func (o *Operator) advices(status string) []Advice {
	out := []Advice{}
	for _, v := range o.ledger.All() {
		if v.advice.Status == status {
			out = append(out, v.advice)
		}
	}
	slices.SortFunc(out, func(a, b Advice) int { return strings.Compare(a.ID, b.ID) })
	return out
}

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

// Actions of the audit trail from which the ledger of recommendations is read.
const (
	opRecommendationApply   = "recommendation.apply"
	opRecommendationDismiss = "recommendation.dismiss"
	opRecommendationUndo    = "recommendation.undo"
)

// A verdict is the latest decision about a recommendation.
type verdict struct {
	advice Advice // at the time of the decision
	at     string
	before json.RawMessage // state before it was applied
}

// applyVerdict applies one audit entry to the verdicts by recommendation id.
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

// decided returns a copy of the verdicts, for evaluations that would hold the ledger too long.
func (o *Operator) decided(ctx context.Context) (map[string]verdict, error) {
	if err := o.ledger.Open(ctx); err != nil {
		return nil, err
	}
	defer o.ledger.Close()
	return maps.Clone(o.ledger.All()), nil
}

// decideTTL is how long decisions are blocked after a replica died during one.
const decideTTL = 15 * time.Second

// decide opens the ledger for a decision. No other decision takes place, on any replica, until done is called.
func (o *Operator) decide(ctx context.Context) (done func(), err error) {
	// the lease first: the ledger must be read after the last decision of another replica
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

// advices returns the recommendations of that status, sorted by id. The caller holds the ledger.
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

package overview

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/spend"
)

// costs caches the model usage of each role.
type costs struct {
	rows map[string]spend.UsageRow
	of   map[string]price
	at   time.Time
	took time.Duration
}

// spent refreshes the cached usage, unless it is recent. Refreshing takes at most about a twentieth of the time. The
// caller holds mu.
func (o *Overview) spent(ctx context.Context) error {
	began := o.o.Now()
	// Wait 20 times as long as the last reading took, so that reading takes at most a twentieth of the time.
	if o.o.Usage == nil || o.costs.rows != nil && began.Sub(o.costs.at) < 20*o.costs.took {
		return nil
	}
	report, err := o.o.Usage(ctx)
	if err != nil {
		return err
	}
	was := o.costs.of
	o.costs = costs{rows: make(map[string]spend.UsageRow, len(report.Data)),
		of: make(map[string]price, len(report.Data))}
	for _, u := range report.Data {
		p := price{Tokens: u.PromptTokens + u.CompletionTokens}
		if u.Cost != nil {
			p.Amount = *u.Cost
		}
		o.costs.rows[u.Key], o.costs.of[u.Key] = u, p
		if was[u.Key] != p && o.roles[u.Key] != nil {
			o.place(u.Key)
		}
	}
	for role := range was {
		if _, still := o.costs.of[role]; !still && o.roles[role] != nil {
			o.place(role)
		}
	}
	o.costs.at = o.o.Now()
	o.costs.took = o.costs.at.Sub(began)
	return nil
}

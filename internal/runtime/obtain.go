package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
)

// obtain asks for a candidate and adds the request's cost to the call. If there is no candidate, it returns nil and the
// outcome.
func (rec *recovery) obtain(ctx context.Context, q forge.Request) (*forge.Candidate, *agent.Outcome) {
	q.For = &rec.Selection
	rec.trail.Enter(&q)
	got := rec.r.forges.Forge(ctx, q)
	rec.trail.Add(rec.Call, &got)
	rec.stages.Forge += got.Took
	rec.stages.Gate += got.Cost.Gated
	if got.Candidate == nil {
		rec.class, rec.trail.refused = got.Class, got.Refused
	}
	return got.Candidate, got.Failure
}

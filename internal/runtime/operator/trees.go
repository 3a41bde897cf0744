package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// linkTrees sets CorrectedBy of nested calls to the call in which the client asked their root again.
func (o *Operator) linkTrees(ctx context.Context, entries []agent.LogEntry) {
	by := map[string]string{} // by root
	for i := range entries {
		if e := &entries[i]; e.Depth == 0 {
			by[e.CallID] = e.CorrectedBy
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.RootCallID == "" || e.CorrectedBy != "" {
			continue
		}
		corrected, known := by[e.RootCallID]
		if !known {
			corrected = o.correctionOf(ctx, e.RootCallID)
			by[e.RootCallID] = corrected
		}
		e.CorrectedBy = corrected
	}
}

// correctionOf returns the id of the call in which the client asked the root call again, or "".
func (o *Operator) correctionOf(ctx context.Context, root string) string {
	got, err := o.store.Call(ctx, root)
	if err != nil {
		return "" // running, or dropped by retention
	}
	return got.Log.CorrectedBy
}

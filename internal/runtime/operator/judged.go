package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// verdictsOf returns a reader of verdicts, which loads each artifact once. It is for a single reply and one goroutine.
func (o *Operator) verdictsOf() *judgedCalls {
	return &judgedCalls{store: o.store, read: map[methodKey]*agent.Artifact{}}
}

// judgedCalls caches artifacts by method; nil means that there is none.
type judgedCalls struct {
	store store.Namespace
	read  map[methodKey]*agent.Artifact
}

// artifact returns the artifact of the call's method, or nil.
func (j *judgedCalls) artifact(ctx context.Context, e *agent.LogEntry) *agent.Artifact {
	k := methodKey{e.Role, e.Method}
	a, known := j.read[k]
	if !known {
		a, _ = j.store.Artifact(ctx, e.Role, e.Method) // no artifact, no verdicts
		j.read[k] = a
	}
	return a
}

// on returns the verdict in force on the call, or "".
func (j *judgedCalls) on(ctx context.Context, e *agent.LogEntry) string {
	a := j.artifact(ctx, e)
	if a == nil {
		return ""
	}
	if v := a.Verdict(e.CallID); v != nil && v.State == agent.ExampleActive {
		return v.Verdict
	}
	return ""
}

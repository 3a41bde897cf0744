package operator

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxNested bounds the nested calls in an explanation.
const maxNested = 64

// nested returns the calls that the call's program made, as many as its journal contains. They precede the call in the
// log.
func (o *Operator) nested(ctx context.Context, call *store.Call) ([]agent.LogEntry, error) {
	n := 0
	for _, d := range sandbox.DoneIn(call.Effects) {
		if d.Calls() {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return o.store.ListCalls(ctx, store.CallQuery{Before: call.Log.CallID, ParentCallID: call.Log.CallID,
		Limit: min(n, maxNested)})
}

// Why explains a call, which may be running, to the asker. It returns store.ErrNotFound for an unknown call.
func (o *Operator) Why(ctx context.Context, callID string, asker why.Asker) (*why.Explanation, error) {
	now := o.calls.Policy()
	in := why.Input{Asker: asker, Policy: &now, PolicyNow: &now, Select: o.calls.Reselect, Price: o.o.Cost}
	e, running := o.calls.Running(callID)
	if running {
		in.Call.Log = e
		return why.Explain(&in), nil
	}
	var err error
	if in.Call, err = o.store.Call(ctx, callID); err == nil {
		err = o.o.Store.Settled()
	}
	if err != nil {
		return nil, err
	}
	log := &in.Call.Log
	if log.RootCallID != "" {
		log.CorrectedBy = o.correctionOf(ctx, log.RootCallID)
	}
	log.Verdict = o.verdictsOf().on(ctx, log)
	all, err := o.store.ListArtifacts(ctx, log.Role)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if len(a.Generations) > 0 {
			in.Methods = append(in.Methods, a.MethodName)
		}
	}
	if in.Artifact, err = o.store.Artifact(ctx, log.Role,
		log.Method); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if in.Nested, err = o.nested(ctx, &in.Call); err != nil {
		return nil, err
	}
	earlier, err := o.policiesSince(ctx, log.Timestamp, &now)
	if err != nil {
		return nil, err
	}
	in.Policy, in.PolicyKnown = earlier.at(log.Timestamp)
	return why.Explain(&in), nil
}

package operator

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// DropVerdict withdraws the verdict on the call, with the example that it made. It returns store.ErrNotFound if there
// is none, and ErrInForce if it is in force and mayOperate is false.
func (o *Operator) DropVerdict(ctx context.Context, callID, actor string, mayOperate bool) error {
	a, v, err := o.findVerdict(ctx, callID)
	if err != nil {
		return err
	}
	unlock := o.calls.HoldAdoption(a.Role, a.MethodName)
	defer unlock()
	entry := o.audit(actor, opVerdictDrop, a.Role+"."+a.MethodName, "")
	entry.SessionID, entry.Undo = v.SessionID, "POST /v1/calls/"+callID+"/verdict"
	_, err = o.changeShown(ctx, store.Target{Role: a.Role, Method: a.MethodName}, &entry, verdictOn(callID),
		func(a *agent.Artifact) (agent.ArtifactChange, error) {
			v := a.Verdict(callID) // read again: it may have been accepted or dropped meanwhile
			switch {
			case v == nil:
				return agent.ArtifactChange{}, store.ErrNotFound
			case v.State == agent.ExampleActive && !mayOperate:
				return agent.ArtifactChange{}, ErrInForce
			}
			return agent.ArtifactChange{DropVerdict: callID, Proposal: v.State == agent.ExampleProposed}, nil
		})
	return err
}

package runtime

import (
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
	"github.com/recurgentd/recurgentd/internal/runtime/turns"
)

// errContractUnknown means that the contract a correction must keep is not known any more.
var errContractUnknown = errors.New(
	"the program was written for the contract of somebody's call, which is not known any more: call the method with it again")

// correcting returns a pseudo-call of the method: the input of the judged call stands in for a caller's, and that
// call's owner for the caller. If the program was made for the contract of a call, the pseudo-call brings that
// contract.
func (r *Runtime) correcting(ctx context.Context, k turns.Method, a *agent.Artifact) (*recovery, error) {
	v := a.Corrections()[0]
	judged, err := r.env.Store.Session(ctx, v.SessionID)
	if err != nil {
		return nil, err
	}
	g := a.Judged(&v)
	c := r.newCall(CallRequest{Role: k.Role, Method: k.Method, Args: v.Args, Kwargs: v.Kwargs, Owner: judged.Owner,
		Contract: g.Asked}, agent.Session{ID: v.SessionID, Role: k.Role, Owner: judged.Owner})
	if g.CallersContract && g.Asked == nil && judged.Role == k.Role {
		c.Asked = judged.Contract // programs of earlier versions did not store the contract
	}
	s := selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call, Artifact: a,
		Decision: selection.Decision{Decision: agent.DecideForge,
			Reason:     selection.ReasonCorrection,
			Generation: g}}, Nester: nester{r}}, r: r}
	if s.Terms, err = c.ResolveTerms(ctx); err == nil && g.CallersContract &&
		(!s.Terms.Own || s.Terms.Checked != g.CheckedFingerprint) {
		err = errContractUnknown
	}
	rec := &recovery{answered: &answered{selected: s}}
	rec.trail.Open(s.Policy)
	return rec, err
}

package operator

import (
	"context"
	"errors"
	"net/url"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/why"
	"github.com/recurgentd/recurgentd/internal/store"
)

// ContractEvidence is a contract that a program proposed, and the role's current one.
type ContractEvidence struct {
	ID       string         `json:"id"`
	Proposed agent.Contract `json:"proposed"`
	Kept     agent.Contract `json:"kept"` // the role's current contract
	ByPerson bool           `json:"by_person"`
	By       string         `json:"by"`    // role.method of the proposing program
	Owner    string         `json:"owner"` // of the call that proposed it
}

// contractProposed fills in a proposed contract. It returns nil if the proposal is decided, or not visible to the
// reader.
func (o *Operator) contractProposed(ctx context.Context, out *Waiting, w *overview.Wait,
	q *InboxQuery) (*Waiting, error) {
	t, err := o.store.Tool(ctx, w.Role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	p := t.Proposals.Find(w.Of)
	if p == nil || q.Sees != nil && p.Owner != q.Owner {
		return nil, nil // it is gone
	}
	out.Summary = "a program of " + agent.Clip(p.By, 200) +
		" delegates with a contract that is stricter than the role's"
	out.Evidence = ProposalEvidence{Contract: &ContractEvidence{ID: p.ID, Proposed: p.Contract, Kept: t.Contract,
		ByPerson: t.ByPerson, By: p.By, Owner: p.Owner}}
	path, command := "/v1/tools/"+url.PathEscape(w.Role)+"/proposals/"+url.PathEscape(p.ID),
		"recurgentd tools contract "
	names := " " + why.Argument(w.Role) + " " + why.Argument(p.ID)
	out.offer("accept the contract", "POST", path+"/accept", "{}", command+"accept"+names)
	out.offer("reject the contract", "POST", path+"/reject", "{}", command+"reject"+names)
	return out, nil
}

// A ContractDecision is a person's decision about a proposed contract.
type ContractDecision struct {
	Role, ID string
	Accept   bool // otherwise reject
	Actor    string
}

// DecideContract accepts or rejects a proposed contract. An accepted one becomes the role's, as with PutTool. A
// rejected one is not proposed again. It returns store.ErrNotFound if there is no such proposal.
func (o *Operator) DecideContract(ctx context.Context, q ContractDecision) (t ChangedTool, err error) {
	t.BroughtBack, err = o.bringingBack(ctx, []string{q.Role}, q.Actor, func() error {
		return untilUnraced(store.AnyRevision, func() error {
			t.Tool, err = o.decideContract(ctx, q)
			return err
		})
	})
	return t, err
}

// decideContract is one attempt. It returns store.ErrConflict if the tool changes between reading and writing.
func (o *Operator) decideContract(ctx context.Context, q ContractDecision) (agent.Tool, error) {
	was, err := o.store.Tool(ctx, q.Role)
	if err != nil {
		return agent.Tool{}, err
	}
	p := was.Proposals.Find(q.ID)
	if p == nil {
		return agent.Tool{}, store.ErrNotFound
	}
	next := was
	if !q.Accept {
		entry := o.audit(q.Actor, opToolReject, q.Role, q.ID)
		entry.Before, entry.Undo = agent.Encoded(p), "PUT /v1/tools/"+url.PathEscape(q.Role)+
			" with the contract that was proposed"
		next.Proposals = was.Proposals.Reject(q.ID)
		t, err := o.store.PutTool(ctx, next, was.Revision, &entry)
		t.Proposals = nil
		return t, err
	}
	merged, _ := contract.Merge(contract.Layers{Call: &p.Contract, Role: &was.Contract})
	next.Contract, next.Owner, next.ByPerson, next.ByUse = *merged, q.Actor, true, false
	return o.replaceTool(ctx, was, next, o.audit(q.Actor, opToolPut, q.Role, q.ID))
}

package agent

import (
	"slices"
	"time"
)

// Bounds of the proposals of one role.
const (
	maxProposals = 8  // open, one per owner
	maxRejected  = 64 // remembered
)

// Proposals are the contracts proposed for a role, on which a person decides. A nil *Proposals is empty. Methods return
// changed copies; a stored value does not change.
type Proposals struct {
	Open []ContractProposal `json:"open,omitempty"`
	// Rejected holds the Checked digests of the newest rejected proposals, oldest first.
	Rejected []string `json:"rejected,omitempty"`
}

// A ContractProposal is a contract that a program asked for and on which a person decides.
type ContractProposal struct {
	ID        string    `json:"id"`      // equal for equal contracts
	Checked   string    `json:"checked"` // equal for deliverables that are checked the same way
	Contract  Contract  `json:"contract"`
	Owner     string    `json:"owner"` // of the call
	By        string    `json:"by"`    // role.method of the program
	CreatedAt time.Time `json:"created_at"`
}

// Find returns the open proposal with that id, or nil.
func (p *Proposals) Find(id string) *ContractProposal {
	if p == nil {
		return nil
	}
	if i := slices.IndexFunc(p.Open, func(o ContractProposal) bool { return o.ID == id }); i >= 0 {
		return &p.Open[i]
	}
	return nil
}

// Of returns the owner's open proposal, or nil.
func (p *Proposals) Of(owner string) *ContractProposal {
	if p == nil {
		return nil
	}
	if i := slices.IndexFunc(p.Open, func(o ContractProposal) bool { return o.Owner == owner }); i >= 0 {
		return &p.Open[i]
	}
	return nil
}

// Known reports whether an open or rejected proposal has that Checked digest.
func (p *Proposals) Known(checked string) bool {
	return p != nil && (slices.Contains(p.Rejected, checked) ||
		slices.ContainsFunc(p.Open, func(o ContractProposal) bool { return o.Checked == checked }))
}

// Add returns the proposals with o added, replacing any of the same owner. ok is false if maxProposals others are open.
func (p *Proposals) Add(o ContractProposal) (next *Proposals, ok bool) {
	next = p.Keep(func(old *ContractProposal) bool { return old.Owner != o.Owner })
	if next == nil {
		next = &Proposals{}
	}
	if len(next.Open) >= maxProposals {
		return p, false
	}
	next.Open = append(next.Open, o)
	return next, true
}

// Reject returns the proposals with that open proposal rejected: only its Checked digest is kept.
func (p *Proposals) Reject(id string) *Proposals {
	rejected := p.Find(id)
	if rejected == nil {
		return p
	}
	next := p.Keep(func(o *ContractProposal) bool { return o != rejected })
	if next == nil {
		next = &Proposals{}
	}
	next.Rejected = append(next.Rejected, rejected.Checked)
	if more := len(next.Rejected) - maxRejected; more > 0 {
		// The oldest are forgotten, so programs may propose them again.
		next.Rejected = next.Rejected[more:]
	}
	return next
}

// Keep returns the proposals with only the open ones that counts accepts; nil if nothing remains.
func (p *Proposals) Keep(counts func(o *ContractProposal) bool) *Proposals {
	if p == nil {
		return nil
	}
	next := &Proposals{Rejected: slices.Clone(p.Rejected)}
	for i := range p.Open {
		if counts(&p.Open[i]) {
			next.Open = append(next.Open, p.Open[i])
		}
	}
	if len(next.Open)+len(next.Rejected) == 0 {
		return nil
	}
	return next
}

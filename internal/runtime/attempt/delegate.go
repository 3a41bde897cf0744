package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	maxStrengthened = 8        // contracts of known roles that one run of a program may change
	maxProposed     = 16 << 10 // bytes of a contract that waits for a person: every call of the role reads it
	mostToolRaces   = 20       // conflicts are usual, because every call of a role counts on its entry
)

// Delegate sets the contract that the program's calls of the role are checked against. The registry keeps the contract
// if it is stricter than the registered one.
func (h *Host) Delegate(ctx context.Context, role string, raw json.RawMessage) *sandbox.AuthoredError {
	if h.Recorded {
		return nil
	}
	h.changes++
	role, err := agent.Name("role", role)
	if err != nil {
		return &sandbox.AuthoredError{Type: agent.ErrInvalidInput, Message: err.Error()}
	}
	var k agent.Contract
	if err := json.Unmarshal(raw, &k); err != nil {
		return &sandbox.AuthoredError{Type: agent.ErrInvalidInput,
			Message: "the contract is not readable: " + err.Error()}
	}
	k.Signature = nil
	checked, odd, err := contract.WithoutSenseless(k.Deliverable)
	if err != nil {
		return &sandbox.AuthoredError{Type: agent.ErrInvalidInput,
			Message: "the contract's deliverable cannot be checked: " + err.Error()}
	}
	k.Deliverable = checked
	for _, o := range odd[:min(len(odd), MaxWarnings)] {
		h.warnings = append(h.warnings, "delegated contract for "+role+", left out: "+o.Error())
	}
	if h.Delegated == nil {
		h.Delegated = map[string]*agent.Contract{}
	}
	h.Delegated[role] = &k
	if h.Dry {
		return nil
	}
	return h.register(ctx, role, &k)
}

// register updates the registry if the delegated contract is stricter than the registered one.
func (h *Host) register(ctx context.Context, role string, k *agent.Contract) *sandbox.AuthoredError {
	for range mostToolRaces {
		was, err := h.For.Env.Store.Tool(ctx, role)
		known := err == nil
		if !known && !errors.Is(err, store.ErrNotFound) {
			return nil
		}
		next := agent.Tool{Role: role, Contract: *k, Owner: h.For.Owner, CreatedAt: h.For.Env.Now()}
		if known {
			var more bool
			if next, more = h.strengthened(was, k); !more {
				return nil
			}
		}
		if reason := h.hinders(ctx, was, next, known); reason != "" {
			h.holdsAlone(role, reason)
			return nil
		}
		_, err = h.For.Env.Store.PutTool(ctx, next, was.Revision, nil)
		switch {
		case err == nil:
			h.registered(was, next)
			return nil
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrExists):
		case known:
			h.holdsAlone(role, "the registry could not keep it")
			return nil
		default:
			return &sandbox.AuthoredError{Type: agent.ErrResourceExhausted, Message: "the tool could not be registered"}
		}
	}
	return nil // give up for now: the next delegation registers it
}

// registered records a successful change of the registry.
func (h *Host) registered(was, next agent.Tool) {
	if was.Revision > 0 {
		h.kept++
	}
	if o := next.Proposals.Of(h.For.Owner); o != nil && was.Proposals.Find(o.ID) == nil {
		h.warnings = append(h.warnings, "the stricter contract for "+next.Role+
			" waits for a person's decision in the inbox")
	}
}

// holdsAlone warns that the registry did not keep the contract, which therefore applies to this call only.
func (h *Host) holdsAlone(role, reason string) {
	h.warnings = append(h.warnings, "the delegated contract for "+role+" holds for this call alone, "+reason)
}

// hinders returns why the registry rejects the change, or "" if it does not.
func (h *Host) hinders(ctx context.Context, was, next agent.Tool, known bool) string {
	if known && h.kept >= maxStrengthened {
		return fmt.Sprintf("one run of a program changes at most %d contracts", maxStrengthened)
	}
	var grown store.Sums
	store.ToolBytes(&next, grown.Add)
	if known {
		store.ToolBytes(&was, func(owner string, b store.Bytes) { grown.Add(owner, store.Bytes{}.Minus(b)) })
	}
	var full *storage.FullError
	if more := grown.Of(h.For.Owner); more.Tools > 0 && errors.As(h.For.Env.Storage.Room(ctx, h.For.Owner, more),
		&full) {
		return "there is no room to keep it: " + full.Error()
	}
	return ""
}

// strengthened returns the tool with the stricter contract: as the tool's own contract if the program owns the tool,
// otherwise as a proposal. more is false if the contract adds nothing.
func (h *Host) strengthened(t agent.Tool, k *agent.Contract) (next agent.Tool, more bool) {
	most := maxProposed
	if h.owns(&t) {
		most = contract.MaxTermsBytes
		next, more = improved(t, k)
	} else {
		next, more = h.proposed(t, k)
	}
	if size := len(k.Purpose) + len(k.Deliverable) + len(k.Acceptance) + len(k.FailurePolicy); more && size > most {
		h.holdsAlone(t.Role, fmt.Sprintf("it has %d bytes, at most %d are kept", size, most))
		return t, false
	}
	return next, more
}

// owns reports whether the program may change the tool's contract itself: the contract was not made by a person, and
// the program, its call and the contract have the same owner.
func (h *Host) owns(t *agent.Tool) bool {
	r := h.For.Asker()
	return !t.ByPerson && (r.SeesAll() || t.Owner == r.Owner && h.program != nil && h.program.Owner == r.Owner)
}

// improved returns the tool with the contract merged in. The new contract takes precedence if it is stricter, or if the
// tool was registered by use alone. Otherwise it only fills in what the tool's own contract lacks.
func improved(t agent.Tool, k *agent.Contract) (next agent.Tool, more bool) {
	over, under := &t.Contract, k
	if t.ByUse && !k.Empty() || stricter(k, &t.Contract) {
		over, under = under, over
	}
	merged, _ := contract.Merge(contract.Layers{Call: over, Role: under})
	if merged == nil || sameTerms(merged, &t.Contract) {
		return t, false
	}
	t.Contract, t.ByUse = *merged, false
	t.Proposals = contract.StillStricter(t.Proposals, t.Deliverable)
	return t, true
}

// proposed returns the tool with the contract as a proposal if it is stricter than the tool's contract and than the
// owner's earlier proposal.
func (h *Host) proposed(t agent.Tool, k *agent.Contract) (next agent.Tool, more bool) {
	waits := t.Proposals.Of(h.For.Owner)
	if waits != nil && bytes.Equal(waits.Contract.Deliverable, k.Deliverable) || !stricter(k, &t.Contract) ||
		waits != nil && !stricter(k, &waits.Contract) {
		return t, false
	}
	o := agent.ContractProposal{ID: "prop_" + short(contract.Fingerprint(k)),
		Checked: short(contract.CheckedFingerprint(k)), Contract: *k, Owner: h.For.Owner,
		By: h.For.Role + "." + h.For.Method, CreatedAt: h.For.Env.Now().UTC()}
	if t.Proposals.Known(o.Checked) || t.Proposals.Known(short(contract.WrittenFingerprint(k))) {
		return t, false
	}
	t.Proposals, more = t.Proposals.Add(o)
	if !more {
		h.holdsAlone(t.Role, "as many proposals wait as may")
	}
	return t, more
}

// short returns the end of a fingerprint, which suffices to identify the proposals of one role.
func short(fingerprint string) string {
	const digits = 24
	return fingerprint[max(0, len(fingerprint)-digits):]
}

// stricter reports whether the deliverable of k rejects more values than that of than.
func stricter(k, than *agent.Contract) bool {
	return !bytes.Equal(k.Deliverable, than.Deliverable) && contract.Stricter(k.Deliverable, than.Deliverable)
}

func sameTerms(a, b *agent.Contract) bool {
	return a.Purpose == b.Purpose && bytes.Equal(a.Deliverable, b.Deliverable) &&
		bytes.Equal(a.Acceptance, b.Acceptance) &&
		bytes.Equal(a.FailurePolicy, b.FailurePolicy) && bytes.Equal(a.Signature, b.Signature)
}

const MaxWarnings = 8

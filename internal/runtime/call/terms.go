package call

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Terms are the contract that a call is held to, resolved.
type Terms struct {
	Contract    *agent.Contract // nil if there is none
	Source      string          // none, hash, fields or merged; "" if nothing was resolved
	Fingerprint string
	Checked     string           // fingerprint of the machine-checked parts
	Written     string           // the same as computed by earlier versions
	Own         bool             // the contract comes from the call, its session or a delegation, not from the registry
	Schema      *contract.Schema // nil if nothing is checked
	Registered  bool             // the registry knows the role
	Words       *contract.Words  // nil if nothing was resolved
	Warnings    []string
}

// ResolveTerms resolves the call's contract from its layers, per top-level key (contract.Merge).
func (c *Call) ResolveTerms(ctx context.Context) (Terms, error) {
	var t Terms
	var l contract.Layers
	tool, err := c.Env.Store.Tool(ctx, c.Role)
	switch {
	case err == nil:
		t.Registered = true
		l.Role, l.ByProgram = &tool.Contract, !tool.ByPerson
		if m, ok := tool.Methods[c.Method]; ok {
			l.Method = &m
		}
	case !errors.Is(err, store.ErrNotFound):
		return t, err
	}
	if c.Role == c.Session.Role {
		l.Session = c.Session.Contract
	}
	if c.Depth > 0 {
		l.Delegated = c.Asked
	} else {
		l.Call = c.Asked
	}
	k := c.Env.Contracts.Resolve(l)
	t.Contract, t.Source, t.Fingerprint, t.Checked, t.Written = k.Contract, k.Source, k.Fingerprint, k.Checked,
		k.Written
	t.Own, t.Words = k.Own, &k.Words
	if !k.Schema.Empty() {
		t.Schema = k.Schema
	}
	for _, i := range k.Ignored {
		t.Warnings = append(t.Warnings, "a part of the contract cannot be checked and is ignored: "+i.Error())
	}
	return t, nil
}

// Deliverable returns the contract's deliverable, or nil if there is none.
func (t *Terms) Deliverable() json.RawMessage {
	if t.Contract == nil {
		return nil
	}
	return t.Contract.Deliverable
}

// RegisteredWords returns the digest of the registered wording, or "" if the call has a wording of its own.
func (t *Terms) RegisteredWords() agent.WordingDigest {
	if t.Words == nil || t.Words.Own {
		return ""
	}
	return t.Words.ByPerson
}

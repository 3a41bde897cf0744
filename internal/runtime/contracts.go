package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/store"
)

// terms are the contract that a call is held to, resolved.
type terms struct {
	contract    *agent.Contract // nil if there is none
	source      string          // none, hash, fields or merged; "" if nothing was resolved
	fingerprint string
	checked     string           // fingerprint of the machine-checked parts
	written     string           // the same as computed by earlier versions
	own         bool             // the contract comes from the call, its session or a delegation, not from the registry
	schema      *contract.Schema // nil if nothing is checked
	registered  bool             // the registry knows the role
	words       *contract.Words  // nil if nothing was resolved
	warnings    []string
}

// resolveTerms resolves the call's contract from its layers, per top-level key (contract.Merge).
func (c *Call) resolveTerms(ctx context.Context) (terms, error) {
	var t terms
	var l contract.Layers
	tool, err := c.env.Store.Tool(ctx, c.role)
	switch {
	case err == nil:
		t.registered = true
		l.Role, l.ByProgram = &tool.Contract, !tool.ByPerson
		if m, ok := tool.Methods[c.method]; ok {
			l.Method = &m
		}
	case !errors.Is(err, store.ErrNotFound):
		return t, err
	}
	if c.role == c.session.Role {
		l.Session = c.session.Contract
	}
	if c.depth > 0 {
		l.Delegated = c.asked
	} else {
		l.Call = c.asked
	}
	k := c.env.Contracts.Resolve(l)
	t.contract, t.source, t.fingerprint, t.checked, t.written = k.Contract, k.Source, k.Fingerprint, k.Checked,
		k.Written
	t.own, t.words = k.Own, &k.Words
	if !k.Schema.Empty() {
		t.schema = k.Schema
	}
	for _, i := range k.Ignored {
		t.warnings = append(t.warnings, "a part of the contract cannot be checked and is ignored: "+i.Error())
	}
	return t, nil
}

// deliverable returns the contract's deliverable, or nil if there is none.
func (t *terms) deliverable() json.RawMessage {
	if t.contract == nil {
		return nil
	}
	return t.contract.Deliverable
}

// registeredWords returns the digest of the registered wording, or "" if the call has a wording of its own.
func (t *terms) registeredWords() agent.WordingDigest {
	if t.words == nil || t.words.Own {
		return ""
	}
	return t.words.ByPerson
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/store"
)

// resolveContract finds the contract of the call: the call's over the session's over the registry's (per method over
// per role), by top-level key.
func (c *call) resolveContract(ctx context.Context) error {
	var ofRole, ofMethod *agent.Contract
	tool, err := c.r.store.Tool(ctx, c.role)
	switch {
	case err == nil:
		c.found.registered = true
		ofRole = &tool.Contract
		if m, ok := tool.Methods[c.method]; ok {
			ofMethod = &m
		}
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	ofSession := c.session.Contract
	if c.role != c.session.Role {
		ofSession = nil
	}
	k := c.r.compiled.resolve(ofRole, ofMethod, ofSession, c.asked)
	c.contract, c.contractSource, c.fingerprint, c.checked, c.schema = k.Contract, k.Source, k.Fingerprint, k.Checked, nil
	if !k.Schema.Empty() {
		c.schema = k.Schema
	}
	for _, i := range k.Ignored {
		c.warn("the contract says what cannot be checked, and nobody is held to it: " + i.Error())
	}
	return nil
}

// compiledContracts keeps contracts ready by what they say, so that a warm call neither canonicalises nor compiles one.
// The zero value is ready.
type compiledContracts struct {
	once  sync.Once
	cache *contract.Cache
}

func (cs *compiledContracts) resolve(ofRole, ofMethod, ofSession, asked *agent.Contract) *contract.Resolved {
	cs.once.Do(func() { cs.cache = contract.NewCache(0) })
	return cs.cache.Resolve(ofRole, ofMethod, ofSession, asked)
}

// checkContract refuses a client's contract that makes no sense.
func checkContract(k *agent.Contract, pointer string) error {
	if size := contractSize(k); size > MaxContract {
		return &InputError{Code: "too_large", Pointer: pointer, Detail: fmt.Sprintf("the contract has %d bytes, at most %d are kept", size, MaxContract)}
	}
	if k == nil || len(k.Deliverable) == 0 {
		return checkSignature(k, pointer)
	}
	_, err := contract.Compile(k.Deliverable)
	var invalid *contract.InvalidError
	if errors.As(err, &invalid) {
		return &InputError{Code: "invalid_contract", Pointer: pointer + "/deliverable" + invalid.Pointer, Detail: invalid.Reason,
			Hint: "see docs/contracts.md for the constraints that are checked"}
	}
	if err != nil {
		return err
	}
	return checkSignature(k, pointer)
}

// Bounds of what clients promise of a role: each contract stands in memory, in prompts, and in the registry's file.
const (
	MaxContract        = 256 << 10 // bytes of one contract's texts
	MaxMethodContracts = 1000      // methods of a role with a contract of their own
)

func contractSize(k *agent.Contract) int {
	if k == nil {
		return 0
	}
	return len(k.Purpose) + len(k.Deliverable) + len(k.Acceptance) + len(k.FailurePolicy) + len(k.Signature)
}

func checkSignature(k *agent.Contract, pointer string) error {
	if k == nil || len(k.Signature) == 0 {
		return nil
	}
	if _, err := contract.ParseSignature(k.Signature); err != nil {
		return &InputError{Code: "invalid_contract", Pointer: pointer + "/signature", Detail: err.Error(),
			Hint: `{"inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}`}
	}
	return nil
}

// checkInputHistory reads the call's history input by the contract's signature, before anything is run or recorded
// (D-07..D-10, D-21, D-25). An input that says nothing is taken out.
func (c *call) checkInputHistory(ctx context.Context) error {
	if c.inputHistory == nil {
		return nil
	}
	if err := c.resolveContract(ctx); err != nil {
		return err
	}
	var sig *contract.Signature
	if c.contract != nil && len(c.contract.Signature) > 0 {
		if s, err := contract.ParseSignature(c.contract.Signature); err == nil {
			sig = &s
		}
	}
	if err := c.sessionTurns(ctx, sig); err != nil {
		return err
	}
	turns, err := history.Parse(c.inputHistory, "history", sig, history.DefaultLimits())
	var bad *history.Error
	if errors.As(err, &bad) {
		return &InputError{Code: bad.Code, Pointer: "/history" + bad.Pointer, Detail: bad.Detail, Hint: `{"messages": [{"question": "q1", "answer": "a1"}]}`, Meta: bad.Meta}
	}
	if len(turns) == 0 {
		c.inputHistory = nil
	}
	return err
}

package contract

import (
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Bounds of what clients promise of a role: each contract stands in memory, in prompts, and in the registry's file.
const (
	MaxTermsBytes = 256 << 10 // bytes of one contract's texts
	MaxMethods    = 1000      // methods of a role with a contract of their own
)

// CheckTerms returns nil when a client's contract can be kept, else an *agent.InputError whose pointer lies below the
// given one. A nil contract is valid.
func CheckTerms(k *agent.Contract, pointer string) error {
	if n := size(k); n > MaxTermsBytes {
		return &agent.InputError{Code: "too_large", Pointer: pointer,
			Detail: fmt.Sprintf("the contract has %d bytes, at most %d are kept", n, MaxTermsBytes)}
	}
	if k == nil || len(k.Deliverable) == 0 {
		return checkSignature(k, pointer)
	}
	_, err := Compile(k.Deliverable)
	var invalid *InvalidError
	if errors.As(err, &invalid) {
		return &agent.InputError{Code: "invalid_contract", Pointer: pointer + "/deliverable" + invalid.Pointer,
			Detail: invalid.Reason,
			Hint:   "see docs/contracts.md for the constraints that are checked"}
	}
	if err != nil {
		return err
	}
	return checkSignature(k, pointer)
}

func size(k *agent.Contract) int {
	if k == nil {
		return 0
	}
	return len(k.Purpose) + len(k.Deliverable) + len(k.Acceptance) + len(k.FailurePolicy) + len(k.Signature)
}

func checkSignature(k *agent.Contract, pointer string) error {
	if k == nil || len(k.Signature) == 0 {
		return nil
	}
	if _, err := ParseNewSignature(k.Signature); err != nil {
		return &agent.InputError{Code: "invalid_contract", Pointer: pointer + "/signature", Detail: err.Error(),
			Hint: `{"inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}`}
	}
	return nil
}

package contract

import (
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Limits of registered contracts. They are kept in memory, in prompts, and in the registry's file.
const (
	MaxTermsBytes = 256 << 10 // bytes of the texts of one contract
	MaxMethods    = 1000      // methods of a role that may have a contract
)

// CheckTerms returns nil if a client's contract is valid and within the limits, else an *agent.InputError with a
// pointer below the given one. A nil contract is valid.
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

// size returns the bytes of a contract's texts.
func size(k *agent.Contract) int {
	if k == nil {
		return 0
	}
	return len(k.Purpose) + len(k.Deliverable) + len(k.Acceptance) + len(k.FailurePolicy) + len(k.Signature)
}

// checkSignature returns an *agent.InputError if the contract has an invalid signature.
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

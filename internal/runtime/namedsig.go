package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxSignatures bounds the named signatures: they are held in memory.
const maxSignatures = 1000

// NamedSignature is a signature under a name.
type NamedSignature struct {
	Name      string             `json:"name"`
	Signature contract.Signature `json:"signature"`
	CreatedAt time.Time          `json:"created_at"`
	UpdatedAt time.Time          `json:"updated_at"`
}

// Signature returns the signature of that name, store.ErrNotFound when there is none.
func (r *Runtime) Signature(ctx context.Context, name string) (NamedSignature, error) {
	if err := r.ledger.open(ctx, r); err != nil {
		return NamedSignature{}, err
	}
	defer r.ledger.close()
	s, ok := r.ledger.signatures[name]
	if !ok {
		return NamedSignature{}, store.ErrNotFound
	}
	return s, nil
}

// PutSignature names a signature, or changes it; created tells which. It is durable in the audit trail.
func (r *Runtime) PutSignature(ctx context.Context, name string, raw json.RawMessage, actor string) (s NamedSignature, created bool, err error) {
	if err := agent.CheckName("name", name); err != nil {
		return s, false, err
	}
	parsed, err := parseSignature(raw, "")
	if err != nil {
		return s, false, err
	}
	if err := r.ledger.open(ctx, r); err != nil {
		return s, false, err
	}
	defer r.ledger.close()
	was, known := r.ledger.signatures[name]
	if !known && len(r.ledger.signatures) >= maxSignatures {
		return s, false, &InputError{Code: "too_large", Detail: "there are 1000 named signatures already", Hint: "delete one, or send the signature with the request"}
	}
	now := r.o.Now().UTC()
	s = NamedSignature{Name: name, Signature: parsed, CreatedAt: now, UpdatedAt: now}
	entry := r.audit(actor, actSignaturePut, name, "")
	entry.Undo = "DELETE /v1/signatures/" + name
	if known {
		s.CreatedAt = was.CreatedAt
		entry.Before, _ = json.Marshal(was) // plain data: it has a JSON form
		entry.Undo = "PUT /v1/signatures/" + name + " with the signature of before"
	}
	entry.After, _ = json.Marshal(s)
	return s, !known, r.ledger.write(ctx, r, entry)
}

// DeleteSignature forgets the name, store.ErrNotFound when there is none.
func (r *Runtime) DeleteSignature(ctx context.Context, name, actor string) error {
	if err := r.ledger.open(ctx, r); err != nil {
		return err
	}
	defer r.ledger.close()
	was, known := r.ledger.signatures[name]
	if !known {
		return store.ErrNotFound
	}
	entry := r.audit(actor, actSignatureDelete, name, "")
	entry.Before, _ = json.Marshal(was) // plain data
	entry.Undo = "PUT /v1/signatures/" + name + " with the signature of before"
	return r.ledger.write(ctx, r, entry)
}

// parseSignature refuses a signature that makes no sense, with a pointer into the request below at.
func parseSignature(raw json.RawMessage, at string) (contract.Signature, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return contract.Signature{}, &InputError{Code: "invalid_contract", Pointer: at, Detail: "a signature is required", Hint: signatureHint}
	}
	s, err := contract.ParseSignature(raw)
	var bad *contract.SignatureError
	if errors.As(err, &bad) {
		return s, &InputError{Code: "invalid_contract", Pointer: at + bad.Pointer, Detail: bad.Reason, Hint: signatureHint}
	}
	return s, err
}

const signatureHint = `{"inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}`

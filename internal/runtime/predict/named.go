package predict

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/history"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxSignatures bounds the number of named signatures, because they are held in memory.
const maxSignatures = 1000

// storedDemos bounds the demos stored with a named signature.
func storedDemos() history.Limits { return history.Limits{Elements: 100, Bytes: 64 << 10} }

// Named is a stored signature. Demos are examples, shaped like elements of a history input. In every prediction with
// the signature they precede the history.
type Named struct {
	Name      string             `json:"name"`
	Signature contract.Signature `json:"signature"`
	Demos     []json.RawMessage  `json:"demos,omitempty"`
	CreatedAt time.Time          `json:"created_at"`
	UpdatedAt time.Time          `json:"updated_at"`
}

// Signature returns the signature with that name, or store.ErrNotFound.
func (svc *Service) Signature(ctx context.Context, name string) (Named, error) {
	if err := svc.named.Open(ctx); err != nil {
		return Named{}, err
	}
	defer svc.named.Close()
	s, ok := svc.named.All()[name]
	if !ok {
		return Named{}, store.ErrNotFound
	}
	return s, nil
}

// ListSignatures returns at most limit named signatures that follow the name after, sorted by name.
func (svc *Service) ListSignatures(ctx context.Context, after string, limit int) ([]Named, error) {
	if err := svc.named.Open(ctx); err != nil {
		return nil, err
	}
	defer svc.named.Close()
	all := make([]Named, 0, len(svc.named.All()))
	for name, s := range svc.named.All() {
		if name > after {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Named) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(len(all), limit)], nil
}

// PutSignature stores a signature under the name, or replaces it; created distinguishes the two. raw is the signature,
// with an optional member demos. The signature is durable in the audit trail once PutSignature returns. An invalid one
// gives an *agent.InputError.
func (svc *Service) PutSignature(ctx context.Context, name string, raw json.RawMessage,
	actor string) (s Named, created bool, err error) {
	if name, err = agent.Name("name", name); err != nil {
		return s, false, err
	}
	parsed, demos, err := parseNamed(raw)
	if err != nil {
		return s, false, err
	}
	if err := svc.named.Open(ctx); err != nil {
		return s, false, err
	}
	defer svc.named.Close()
	was, known := svc.named.All()[name]
	if !known && len(svc.named.All()) >= maxSignatures {
		return s, false, &agent.InputError{Code: "too_large", Detail: "there are 1000 named signatures already",
			Hint: "delete one, or send the signature with the request"}
	}
	now := svc.o.Now().UTC()
	s = Named{Name: name, Signature: parsed, Demos: demos, CreatedAt: now, UpdatedAt: now}
	entry := svc.audit(actor, opSignaturePut, name)
	entry.Undo = "DELETE " + signaturePath(name)
	if known {
		s.CreatedAt = was.CreatedAt
		entry.Before = agent.Encoded(was)
		entry.Undo = "PUT " + signaturePath(name) + " with the signature of before"
	}
	entry.After = agent.Encoded(s)
	return s, !known, svc.store.AppendAudit(ctx, entry)
}

// audit returns an audit entry of the present time.
func (svc *Service) audit(actor, action, target string) agent.AuditEntry {
	return trail.Entry(svc.o.Now(), actor, action, target)
}

// signaturePath returns the REST path of a named signature, for undo instructions.
func signaturePath(name string) string { return "/v1/signatures/" + url.PathEscape(name) }

// DeleteSignature deletes the named signature, or returns store.ErrNotFound.
func (svc *Service) DeleteSignature(ctx context.Context, name, actor string) error {
	if err := svc.named.Open(ctx); err != nil {
		return err
	}
	defer svc.named.Close()
	was, known := svc.named.All()[name]
	if !known {
		return store.ErrNotFound
	}
	entry := svc.audit(actor, opSignatureDelete, name)
	entry.Before = agent.Encoded(was)
	entry.Undo = "PUT " + signaturePath(name) + " with the signature of before"
	return svc.store.AppendAudit(ctx, entry)
}

// parseNamed parses a signature with its optional member demos.
func parseNamed(raw json.RawMessage) (contract.Signature, []json.RawMessage, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		members = nil // parseSignature reports the error
	}
	given, with := members["demos"]
	if with {
		delete(members, "demos")
		raw = agent.Encoded(members)
	}
	sig, err := parseSignature(raw, "")
	if err != nil || !with {
		return sig, nil, err
	}
	var demos []json.RawMessage
	if json.Unmarshal(given, &demos) != nil {
		return sig, nil, &agent.InputError{Code: codeInvalidInput, Pointer: "/demos",
			Detail: "must be a list of objects", Hint: `[{"question": "q1", "answer": "a1"}]`}
	}
	return sig, demos, fault(checkDemos(&sig, demos, storedDemos()))
}

// parseSignature parses a signature. An invalid one gives an *agent.InputError whose pointer begins with at.
func parseSignature(raw json.RawMessage, at string) (contract.Signature, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return contract.Signature{}, &agent.InputError{Code: "invalid_contract", Pointer: at,
			Detail: "a signature is required", Hint: signatureHint}
	}
	s, err := contract.ParseNewSignature(raw)
	var bad *contract.SignatureError
	if errors.As(err, &bad) {
		return s, &agent.InputError{Code: "invalid_contract", Pointer: at + bad.Pointer, Detail: bad.Reason,
			Hint: signatureHint}
	}
	return s, err
}

const signatureHint = `{"inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}`

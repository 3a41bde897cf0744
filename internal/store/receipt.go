package store

import (
	"context"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Receipt has the id of the audit entry that a change left. The zero value is empty; its methods may be called concurrently.
type Receipt struct{ id atomic.Pointer[string] }

// AuditID returns the id of the first entry that was committed with the receipt's context, "" while there is none.
func (r *Receipt) AuditID() string {
	if id := r.id.Load(); id != nil {
		return *id
	}
	return ""
}

type receiptKey struct{}

// WithReceipt returns a context whose changes leave the id of their audit entry in the receipt.
func WithReceipt(ctx context.Context, r *Receipt) context.Context {
	return context.WithValue(ctx, receiptKey{}, r)
}

// Acknowledge puts the id of a committed entry, nil for none, into the context's receipt, if it has one. Stores call it.
func Acknowledge(ctx context.Context, e *agent.AuditEntry) {
	if e == nil {
		return
	}
	if r, ok := ctx.Value(receiptKey{}).(*Receipt); ok {
		id := e.ID
		r.id.CompareAndSwap(nil, &id)
	}
}

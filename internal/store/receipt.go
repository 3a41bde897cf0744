package store

import (
	"context"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A Receipt receives the id of the audit entry that a change wrote. The zero value is empty. Its methods may be called
// concurrently.
type Receipt struct{ id atomic.Pointer[string] }

// AuditID returns the id of the first entry committed with the receipt's context, or "" if there is none yet.
func (r *Receipt) AuditID() string {
	if id := r.id.Load(); id != nil {
		return *id
	}
	return ""
}

type receiptKey struct{}

// WithReceipt returns a context with which changes put the id of their audit entry into the receipt.
func WithReceipt(ctx context.Context, r *Receipt) context.Context {
	return context.WithValue(ctx, receiptKey{}, r)
}

// Acknowledge puts the id of a committed entry into the context's receipt, if it has one. A nil entry is ignored.
// Stores call it.
func Acknowledge(ctx context.Context, e *agent.AuditEntry) {
	if e == nil {
		return
	}
	if r, ok := ctx.Value(receiptKey{}).(*Receipt); ok {
		id := e.ID
		r.id.CompareAndSwap(nil, &id)
	}
}

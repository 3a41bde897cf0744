package store

import "context"

// Patience is the key of a context whose work belongs to a call in flight. If the store is unavailable for a moment,
// such work waits as long as the call's commit would, instead of failing, because the call has already begun and cannot
// be rejected any more.
type Patience struct{}

// Patient returns ctx with Patience.
func Patient(ctx context.Context) context.Context {
	return context.WithValue(ctx, Patience{}, true)
}

// IsPatient reports whether ctx has Patience.
func IsPatient(ctx context.Context) bool { return ctx.Value(Patience{}) != nil }

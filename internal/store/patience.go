package store

import "context"

// Patience is the key of a context whose work is part of a call under way. A store that is away for a moment has it wait for as long as the call's commit
// would, in place of an error, since what was begun cannot be refused any more.
type Patience struct{}

// Patient returns ctx with Patience.
func Patient(ctx context.Context) context.Context {
	return context.WithValue(ctx, Patience{}, true)
}

// IsPatient reports whether the context has Patience.
func IsPatient(ctx context.Context) bool { return ctx.Value(Patience{}) != nil }

package sandbox

import "context"

type backgroundKey struct{}

// Background returns a context for work that no caller waits for, such as the correction of a program behind its answers. What Load, Fix and Run do for it waits behind what they
// do for callers: for a place to run, and for the compiler.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// InBackground reports whether no caller waits for what ctx is for.
func InBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }

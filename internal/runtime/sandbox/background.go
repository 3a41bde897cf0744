package sandbox

import "context"

type backgroundKey struct{}

// Background returns a context for work that no caller waits for, such as correcting a program after it has answered.
// With it, Load, Fix and Run wait behind foreground work for a place to run and for the compiler.
func Background(ctx context.Context) context.Context {
	return context.WithValue(ctx, backgroundKey{}, true)
}

// InBackground reports whether ctx comes from Background.
func InBackground(ctx context.Context) bool { return ctx.Value(backgroundKey{}) != nil }

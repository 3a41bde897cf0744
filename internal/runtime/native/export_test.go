package native

import "context"

// SetText has the builder compile that text, whatever the program, until the returned function is called.
func SetText(b *Builder, text string) (undo func()) {
	old := b.opts.Text
	b.opts.Text = func(context.Context, string) (string, error) { return text, nil }
	return func() { b.opts.Text = old }
}

// ShareGoCache has the builder compile the packages in a cache that outlives it.
func ShareGoCache(b *Builder, dir string) { b.goCache = dir }

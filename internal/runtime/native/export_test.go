package native

import (
	"context"
	"path/filepath"
)

// SetText has the builder compile that text, whatever the program, until the returned function is called.
func SetText(b *Builder, text string) (undo func()) {
	old := b.opts.Text
	b.opts.Text = func(context.Context, string) (string, error) { return text, nil }
	return func() { b.opts.Text = old }
}

// ShareGoCache has the builder compile the packages in a cache that outlives it.
func ShareGoCache(b *Builder, dir string) { b.goCache = dir }

// BuildMany builds one executable of many programs, by their texts, in the cache's directory.
func BuildMany(ctx context.Context, b *Builder, name string, texts []string) (path string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.prepare(ctx); err != nil {
		return "", err
	}
	path = filepath.Join(b.dir("exe"), name)
	return path, b.build(ctx, texts, path)
}

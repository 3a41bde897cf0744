package native

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SetText has the builder compile that text, whatever the program, until the returned function is called.
func SetText(b *Builder, text string) (undo func()) {
	old := b.opts.Text
	b.opts.Text = func(context.Context, string) (string, error) { return text, nil }
	return func() { b.opts.Text = old }
}

// ShareGoCache has the builder compile the packages in a cache that outlives it.
func ShareGoCache(b *Builder, dir string) { b.goCache = dir }

// SharePackages has the builder use the packages that the other has compiled.
func SharePackages(ctx context.Context, b, from *Builder) error {
	from.mu.Lock()
	defer from.mu.Unlock()
	if err := from.prepare(ctx); err != nil {
		return err
	}
	return os.Symlink(from.dir(from.packagesDir()), b.dir(b.packagesDir()))
}

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

// AddPackages compiles more packages, of the module in the directory, for texts to import.
func AddPackages(ctx context.Context, b *Builder, module string, paths ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-export", "-trimpath", "-f", "{{.ImportPath}}={{.Export}}"}, paths...)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), strings.Fields(buildFlags)...)
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	dir := b.dir(b.packagesDir())
	before, err := os.ReadFile(filepath.Join(dir, "packages"))
	if err != nil || strings.Contains(string(before), paths[0]+"=") {
		return err
	}
	if err := keepPackages(string(out), dir); err != nil {
		return err
	}
	added, err := os.ReadFile(filepath.Join(dir, "packages"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "packages"), append(before, added...), 0o644)
}

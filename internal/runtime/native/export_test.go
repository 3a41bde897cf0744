package native

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
)

// ShareGoCache makes the builder compile the packages in a cache that outlives it.
func ShareGoCache(b *Builder, dir string) { b.GoCache = dir }

// SharePackages makes the builder use the packages that the other has compiled.
func SharePackages(ctx context.Context, b, from *Builder) error {
	if _, err := from.shared(ctx); err != nil {
		return err
	}
	to := b.dir(b.packagesDir())
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, p := range from.packages.list {
		if err := os.Link(filepath.Join(from.dir(from.packagesDir()), p.File), filepath.Join(to, p.File)); err != nil {
			return err
		}
	}
	return b.sealPackages(to, from.packages.list)
}

// AddPackages compiles more packages of the module in the directory, for texts to import, or replacements for existing
// ones. If overlay is not "", it is the go command's overlay file.
func AddPackages(ctx context.Context, b *Builder, module, overlay string, paths ...string) error {
	b.preparing.Lock()
	defer b.preparing.Unlock()
	if err := b.makeReady(ctx); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go",
		append([]string{"list", "-export", "-trimpath", "-overlay", overlay, "-f", "{{.ImportPath}}={{.Export}}"},
			paths...)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), carried.Settings...)
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	dir := b.dir(b.packagesDir())
	added, err := keepPackages(string(out), dir)
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(slices.Clone(b.packages.list), func(p carried.File) bool {
		return slices.ContainsFunc(added, func(a carried.File) bool { return a.Path == p.Path })
	})
	if err := b.sealPackages(dir, append(list, added...)); err != nil {
		return err
	}
	b.packages, err = b.readPackages(b.packagesDir())
	return err
}

// ToolchainAt returns the toolchain of a GOROOT.
var ToolchainAt = toolchainAt

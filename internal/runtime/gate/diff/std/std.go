// Package std provides the packages that programs may import, as compiled by the installed Go toolchain. Only tests
// import it.
package std

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// ExportData returns an import configuration for the linker with the compiled form of every package that programs may
// import and of all their dependencies.
var ExportData = sync.OnceValues(func() (string, error) {
	list := []string{"list", "-export", "-deps", "-f", "packagefile {{.ImportPath}}={{.Export}}"}
	for _, p := range allow.Packages() {
		list = append(list, allow.TruePath(p.Path))
	}
	cmd := exec.Command("go", list...)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	out, err := cmd.Output()
	return strings.ReplaceAll(string(out), "packagefile unsafe=\n", ""), err
})

// Importer returns an importer for these packages. It is the same for all callers and safe for concurrent use.
var Importer = sync.OnceValues(func() (types.Importer, error) {
	list, err := ExportData()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(list) {
		path, file, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "packagefile "), "=")
		files[path] = file
	}
	for _, p := range allow.Packages() {
		files[p.Path] = files[allow.TruePath(p.Path)]
	}
	gc := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser,
		error) {
		return os.Open(files[path])
	})
	return &locked{gc: gc}, nil
})

// locked makes an importer safe for concurrent use.
type locked struct {
	mu sync.Mutex
	gc types.Importer
}

func (l *locked) Import(path string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gc.Import(path)
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
)

// tierText is package main of the kernels as the native tier compiles them. %s stands for imports and for the table.
const tierText = `package main

import (
	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
%s)

func table() map[string]func(*recurgent.Call) (any, error) {
	with := func(p support.Program) func(*recurgent.Call) (any, error) {
		return func(c *recurgent.Call) (any, error) { p.Reset(); return p.Run(c) }
	}
	return map[string]func(*recurgent.Call) (any, error){
%s	}
}
`

// buildTier compiles the kernels' native texts into one binary, each a package of its own, beside the packages that executables consist of.
func buildTier(dir string) (string, error) {
	const module = "github.com/recurgentd/recurgentd"
	files := map[string]string{"go.mod": "module " + module + "\n\ngo 1.26\n", "main/main.go": strings.Replace(nativeText, `"recurgent"`, fmt.Sprintf("%q", allow.HostPath), 1), "main/serve.go": serveText}
	err := fs.WalkDir(runtime.NativeSources, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, "_test.go") {
			var data []byte
			data, err = fs.ReadFile(runtime.NativeSources, name)
			files["internal/runtime/"+name] = string(data)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	files["internal/runtime/sandbox/narrow/now/now.go"] = "package now\n" // nothing confines the kernels
	var imports, table strings.Builder
	for _, k := range kernels {
		text, err := tierOf(k)
		if err != nil {
			return "", fmt.Errorf("%s: %w", k.name, err)
		}
		files["internal/kernels/"+k.name+"/program.go"] = strings.Replace(text, `"recurgent"`, fmt.Sprintf("%q", allow.HostPath), 1)
		fmt.Fprintf(&imports, "\t%s_ \"%s/internal/kernels/%s\"\n", k.name, module, k.name)
		fmt.Fprintf(&table, "\t\t%q: with(%s_.%s),\n", k.name, k.name, rewrite.Main)
	}
	files["main/table.go"] = fmt.Sprintf(tierText, imports.String(), table.String())
	dir = filepath.Join(dir, "tier")
	if err := writeAll(dir, files); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", "kernels", "./main")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOPROXY=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return filepath.Join(dir, "kernels"), nil
}

func tierOf(k kernel) (string, error) {
	g, err := gate.New(gate.Options{})
	if err != nil {
		return "", err
	}
	p, refusal := g.CheckAsWritten(k.source())
	if refusal != nil {
		return "", errors.New(refusal.Message)
	}
	return rewrite.Text(p, k.source())
}

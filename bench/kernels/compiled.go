package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
)

// compiledMain is package main of the kernels as the daemon compiles them. The %s stand for the imports and the table.
const compiledMain = `package main

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

// buildCompiled compiles the rewritten texts of the kernels into one binary, each as its own package, together with the
// packages that executables of programs consist of. It returns the path of the binary.
func buildCompiled(dir string) (string, error) {
	const module = "github.com/recurgentd/recurgentd"
	files := map[string]string{"go.mod": "module " + module + "\n\ngo 1.26\n",
		"main/main.go":  strings.Replace(nativeText, `"recurgent"`, fmt.Sprintf("%q", allow.HostPath), 1),
		"main/serve.go": serveText}
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
		text, err := compiledText(k)
		if err != nil {
			return "", fmt.Errorf("%s: %w", k.name, err)
		}
		files["internal/kernels/"+k.name+"/program.go"] = strings.Replace(text, `"recurgent"`,
			fmt.Sprintf("%q", allow.HostPath), 1)
		fmt.Fprintf(&imports, "\t%s_ \"%s/internal/kernels/%s\"\n", k.name, module, k.name)
		// RecurgentNativeProgram is the variable that package rewrite adds.
		fmt.Fprintf(&table, "\t\t%q: with(%s_.RecurgentNativeProgram),\n", k.name, k.name)
	}
	files["main/table.go"] = fmt.Sprintf(compiledMain, imports.String(), table.String())
	dir = filepath.Join(dir, "compiled")
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

// compiledText returns the text of a kernel as package rewrite makes it.
func compiledText(k kernel) (string, error) {
	p, err := check(k)
	if err != nil {
		return "", err
	}
	return rewrite.Text(p, k.source())
}

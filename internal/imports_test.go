// Package internal_test states which packages may import which. Imports point one way:
//
//	cmd → cli → app → api → runtime → {store, contract, telemetry} → agent
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/recurgentd/recurgentd/"

// allowed says what the packages below a directory may import of ours, by directory. The longest matching key
// counts; a package may always import those below its own directory.
var allowed = map[string][]string{
	"api":                        {}, // the embedded OpenAPI document
	"cmd":                        {"internal/cli"},
	"test":                       {"internal/cli", "internal/api/apitest", "internal/runtime"}, // and nothing imports it
	"internal/app":               {"api", "internal/api", "internal/runtime", "internal/store", "internal/contract", "internal/telemetry", "internal/agent"},
	"internal/client":            {"internal/runtime", "internal/agent"},
	"internal/cli":               {"internal/app", "internal/client", "internal/api", "internal/runtime", "internal/store", "internal/contract", "internal/telemetry", "internal/agent"},
	"internal/api":               {"api", "internal/runtime", "internal/store", "internal/contract", "internal/telemetry", "internal/agent"},
	"internal/runtime":           {"internal/store", "internal/contract", "internal/telemetry", "internal/agent"},
	"internal/runtime/prompt":    {"internal/runtime/provider", "internal/runtime/gate", "internal/store", "internal/contract", "internal/agent"},
	"internal/runtime/provider":  {"internal/agent", "internal/contract", "internal/store"},
	"internal/runtime/recurgent": {}, // programs import it
	"internal/runtime/gate":      {"internal/runtime/recurgent", "internal/agent", "internal/contract", "internal/store"},
	"internal/runtime/sandbox":   {"internal/runtime/gate", "internal/runtime/recurgent", "internal/agent", "internal/contract", "internal/store"},
	"internal/runtime/history":   {"internal/runtime/provider", "internal/agent", "internal/contract", "internal/store"},
	"internal/runtime/interrupt": {"internal/agent"},
	"internal/runtime/progress":  {"internal/agent"},
	"internal/runtime/predict": {"internal/runtime/history", "internal/runtime/provider", "internal/runtime/progress", "internal/runtime/interrupt",
		"internal/telemetry", "internal/agent", "internal/contract", "internal/store"},
	"internal/runtime/operator": {"internal/runtime", "internal/telemetry", "internal/store", "internal/contract", "internal/agent"},
	"internal/runtime/evolve":   {"internal/runtime/history", "internal/agent", "internal/contract", "internal/store"},
	"internal/store":            {"internal/agent"},
	"internal/contract":         {"internal/agent"},
	"internal/telemetry":        {"internal/agent"},
	"internal/agent":            {},
}

func TestImportsPointOneWay(t *testing.T) {
	root := ".."
	for _, top := range []string{"cmd", "internal", "api", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			// Tests may look across: they wire real parts together.
			if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return nil
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				return err
			}
			checkFile(t, file, path.Dir(filepath.ToSlash(rel)))
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func checkFile(t *testing.T, file, dir string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	key := ruleFor(dir)
	if key == "" {
		t.Errorf("%s: no rule says what %s may import; add one here", file, dir)
		return
	}
	for _, spec := range parsed.Imports {
		name, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		if ours && !mayImport(key, name) {
			t.Errorf("%s imports %s; packages of %s may import %v", file, name, key, allowed[key])
		}
	}
}

// ruleFor returns the longest key that dir is, or is below of.
func ruleFor(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := allowed[dir]; ok {
			return dir
		}
	}
	return ""
}

func mayImport(key, name string) bool {
	if within(name, key) {
		return true
	}
	for _, a := range allowed[key] {
		if within(name, a) {
			return true
		}
	}
	return false
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// The rules themselves point one way: no two directories allow each other.
func TestRulesHaveNoCycle(t *testing.T) {
	state := map[string]int{} // 1 on the way, 2 done
	var visit func(string, []string)
	visit = func(key string, way []string) {
		if state[key] == 1 {
			t.Errorf("cycle: %s", strings.Join(append(way, key), " → "))
			return
		}
		if state[key] == 2 {
			return
		}
		state[key] = 1
		for _, next := range allowed[key] {
			if _, ok := allowed[next]; ok && !within(key, next) {
				visit(next, append(way, key))
			}
		}
		state[key] = 2
	}
	for key := range allowed {
		visit(key, nil)
	}
}

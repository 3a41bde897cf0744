// Package internal_test states which packages may import which. Imports point one way:
//
//	cmd → cli → app → api → runtime → {store, contract, telemetry} → agent
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/recurgentd/recurgentd/"

// allowed says what the packages below a directory may import of ours, by directory. The longest matching key
// counts; a package may always import those below its own directory.
var allowed = map[string][]string{
	// the embedded OpenAPI document
	"api": {},
	// see TestDaemonParsesNoProgram
	"cmd": {"internal/cli", "internal/runtime/sandbox"},
	// and nothing imports it
	"bench": {"internal/runtime"},
	// and nothing imports it
	"test": {"internal/cli", "internal/api/apitest", "internal/app/apptest", "internal/store/postgres/pgtest",
		"internal/runtime"},
	// runs a daemon on simulated parts
	"test/sim": {"internal/app", "internal/store/disk/vfs", "internal/access", "internal/runtime",
		"internal/agent"},
	"internal/app": {"internal/seal", "internal/beneath", "api", "internal/api",
		"internal/mcp", "internal/cluster", "internal/runtime", "internal/store", "internal/telemetry",
		"internal/access", "internal/fair", "internal/agent"},
	"internal/cluster": {"internal/store", "internal/agent"},
	"internal/client":  {"internal/runtime", "internal/agent"},
	"internal/cli": {"internal/app", "internal/mcp", "internal/client", "internal/runtime", "internal/store",
		"internal/telemetry", "internal/access",
		"internal/agent"},
	"internal/api": {"api", "internal/strict", "internal/ui", "internal/mcp", "internal/cluster",
		"internal/runtime", "internal/store", "internal/telemetry", "internal/access",
		"internal/fair", "internal/agent"},
	"internal/strict": {},
	"internal/ui":     {},
	"internal/mcp": {"internal/access", "internal/strict", "internal/runtime",
		"internal/store", "internal/agent"},
	"internal/runtime": {"internal/store", "internal/contract", "internal/telemetry", "internal/agent"},
	"internal/runtime/prompt": {"internal/runtime/provider", "internal/contract",
		"internal/agent"},
	"internal/runtime/provider":  {"internal/agent", "internal/fair"},
	"internal/runtime/recurgent": {},                             // programs import it
	"internal/runtime/plain":     {"internal/runtime/recurgent"}, // native executables consist of it too
	"internal/runtime/gate/diff/compiled": {"internal/runtime", "internal/beneath", "internal/seal",
		"internal/agent"},
	"internal/runtime/gate": {"internal/runtime/recurgent"},
	// the daemon reads it
	"internal/runtime/gate/report": {},
	// native executables consist of it too
	"internal/runtime/gate/rt": {"internal/runtime/plain", "internal/runtime/recurgent"},
	"internal/runtime/fetch": {"internal/cache", "internal/runtime/charsets",
		"internal/runtime/sandbox/wire", "internal/runtime/recurgent", "internal/fair", "internal/agent"},
	"internal/runtime/connections": {"internal/beneath", "internal/runtime/fetch", "internal/agent"},
	"internal/runtime/sandbox": {"internal/runtime/charsets", "internal/runtime/fetch",
		"internal/runtime/gate/report", "internal/runtime/recurgent", "internal/fair", "internal/agent"},
	"internal/runtime/sandbox/serve": {"internal/runtime/plain", "internal/runtime/sandbox/wire",
		"internal/runtime/gate/rt", "internal/runtime/gate/report", "internal/runtime/recurgent"},
	"internal/runtime/sandbox/confine": {"internal/runtime/sandbox/wire"},
	"internal/runtime/sandbox/launch":  {"internal/runtime/sandbox/confine", "internal/runtime/sandbox/wire"},
	// native executables consist of it too
	"internal/runtime/sandbox/narrow": {"internal/runtime/sandbox/threads"},
	"internal/runtime/sandbox/policy": {"internal/runtime/sandbox/confine", "internal/runtime/sandbox/wire"},
	"internal/runtime/sandbox/probe":  {"internal/runtime/sandbox/wire"},
	"internal/runtime/sandbox/worker": {"internal/runtime/sandbox/confine", "internal/runtime/sandbox/launch",
		"internal/runtime/sandbox/probe", "internal/runtime/sandbox/serve", "internal/runtime/sandbox/wire",
		"internal/runtime/sandbox/threads", "internal/runtime/gate", "internal/runtime/recurgent"},
	"internal/runtime/sandbox/wire":    {"internal/runtime/gate/report"},
	"internal/runtime/sandbox/threads": {},
	"internal/runtime/native/support": {"internal/runtime/sandbox/narrow", "internal/runtime/sandbox/serve",
		"internal/runtime/gate/rt", "internal/runtime/gate/report", "internal/runtime/recurgent"},
	"internal/runtime/native/support/contexts":   {"internal/runtime/native/support", "internal/runtime/recurgent"},
	"internal/runtime/native/support/logs":       {"internal/runtime/native/support", "internal/runtime/recurgent"},
	"internal/runtime/native/support/maphash":    {"internal/runtime/native/support"},
	"internal/runtime/native/support/random":     {"internal/runtime/native/support"},
	"internal/runtime/native/support/reflection": {"internal/runtime/gate/rt"},
	"internal/runtime/native": {"internal/seal", "internal/beneath", "internal/runtime/gate/allow",
		"internal/runtime/sandbox/wire"},
	"internal/runtime/history": {"internal/runtime/provider", "internal/agent", "internal/contract"},
	"internal/runtime/spend":   {"internal/runtime/provider", "internal/store", "internal/agent"},
	"internal/runtime/files": {"internal/runtime/trail", "internal/runtime/storage", "internal/store",
		"internal/agent"},
	"internal/runtime/storage":   {"internal/store", "internal/agent"},
	"internal/runtime/interrupt": {"internal/agent"},
	"internal/runtime/progress":  {"internal/agent"},
	"internal/runtime/trail":     {"internal/store", "internal/agent"},
	"internal/runtime/predict": {"internal/runtime/trail", "internal/runtime/history", "internal/runtime/provider",
		"internal/runtime/interrupt", "internal/runtime/spend", "internal/telemetry", "internal/agent",
		"internal/contract", "internal/store"},
	"internal/runtime/equal":    {},
	"internal/runtime/classify": {"internal/runtime/sandbox", "internal/agent"},
	"internal/runtime/programs": {"internal/runtime/gate/report", "internal/runtime/sandbox", "internal/contract",
		"internal/agent"},
	"internal/runtime/selection": {"internal/agent"},
	"internal/runtime/turns":     {},
	"internal/runtime/lifetime":  {"internal/runtime/interrupt", "internal/store"},
	"internal/runtime/env": {"internal/runtime/classify", "internal/runtime/files", "internal/runtime/programs",
		"internal/runtime/provider", "internal/runtime/sandbox", "internal/runtime/spend",
		"internal/runtime/storage", "internal/store", "internal/contract", "internal/telemetry", "internal/fair",
		"internal/agent"},
	"internal/runtime/call": {"internal/runtime/env", "internal/runtime/equal", "internal/runtime/fetch",
		"internal/runtime/files", "internal/runtime/history", "internal/runtime/lifetime",
		"internal/runtime/progress", "internal/runtime/prompt", "internal/runtime/provider",
		"internal/runtime/sandbox", "internal/runtime/selection", "internal/runtime/spend", "internal/store",
		"internal/contract", "internal/telemetry", "internal/agent"},
	"internal/runtime/attempt": {"internal/runtime/call", "internal/runtime/classify", "internal/runtime/fetch",
		"internal/runtime/files", "internal/runtime/gate/report", "internal/runtime/history",
		"internal/runtime/predict", "internal/runtime/programs", "internal/runtime/progress",
		"internal/runtime/provider", "internal/runtime/recurgent", "internal/runtime/sandbox",
		"internal/runtime/spend", "internal/runtime/storage", "internal/store", "internal/contract",
		"internal/telemetry", "internal/agent"},
	"internal/runtime/judge": {"internal/contract", "internal/runtime/attempt", "internal/runtime/call",
		"internal/runtime/classify", "internal/runtime/fetch", "internal/runtime/interrupt",
		"internal/runtime/prompt", "internal/runtime/sandbox", "internal/agent"},
	"internal/runtime/proof": {"internal/agent", "internal/contract", "internal/runtime/attempt",
		"internal/runtime/call", "internal/runtime/classify", "internal/runtime/equal", "internal/runtime/interrupt",
		"internal/runtime/judge", "internal/runtime/prompt", "internal/runtime/sandbox",
		"internal/runtime/selection", "internal/store"},
	"internal/runtime/forge": {"internal/agent", "internal/runtime/attempt",
		"internal/runtime/call", "internal/runtime/charsets", "internal/runtime/classify", "internal/runtime/evolve",
		"internal/runtime/gate/report", "internal/runtime/interrupt", "internal/runtime/judge",
		"internal/runtime/programs", "internal/runtime/progress", "internal/runtime/prompt",
		"internal/runtime/proof", "internal/runtime/provider", "internal/runtime/sandbox",
		"internal/runtime/selection", "internal/runtime/spend", "internal/runtime/storage", "internal/runtime/turns",
		"internal/store", "internal/telemetry"},
	"internal/runtime/keys":      {"internal/store"},
	"internal/runtime/lifecycle": {"internal/agent", "internal/runtime/selection"},
	"internal/runtime/verify": {"internal/agent", "internal/contract", "internal/runtime/attempt",
		"internal/runtime/call", "internal/runtime/env", "internal/runtime/policies", "internal/runtime/proof",
		"internal/runtime/sandbox", "internal/runtime/selection"},
	"internal/runtime/policies": {"internal/agent", "internal/runtime/env", "internal/store"},
	"internal/runtime/running": {"internal/agent", "internal/runtime/call", "internal/runtime/interrupt",
		"internal/runtime/progress"},
	"internal/runtime/sessions": {"internal/agent", "internal/contract", "internal/runtime/attempt",
		"internal/runtime/call", "internal/runtime/env", "internal/runtime/interrupt", "internal/runtime/running",
		"internal/runtime/trail", "internal/runtime/turns", "internal/store"},
	"internal/runtime/correct": {"internal/agent", "internal/runtime/attempt", "internal/runtime/call",
		"internal/runtime/env", "internal/runtime/forge", "internal/runtime/judge", "internal/runtime/prompt",
		"internal/runtime/proof", "internal/runtime/provider", "internal/runtime/sandbox",
		"internal/runtime/selection", "internal/runtime/turns", "internal/store"},
	"internal/runtime/catalog": {"internal/strict", "internal/runtime/gate/report", "internal/store",
		"internal/contract", "internal/agent"},
	"internal/runtime/why": {"internal/runtime", "internal/store", "internal/agent"},
	"internal/runtime/operator": {"internal/runtime", "internal/telemetry", "internal/bell", "internal/fair",
		"internal/store", "internal/contract", "internal/agent"},
	"internal/runtime/overview": {"internal/runtime/spend", "internal/bell", "internal/store", "internal/agent"},
	"internal/runtime/evolve":   {"internal/agent", "internal/contract"},
	"internal/store": {"internal/beneath", "internal/cache", "internal/bell", "internal/fair",
		"internal/agent"},
	"internal/contract":    {"internal/agent"},
	"internal/telemetry":   {"internal/agent"},
	"internal/access":      {"internal/agent"},
	"internal/access/oidc": {"internal/cache", "internal/access", "internal/strict", "internal/agent"},
	"internal/agent":       {},
	"internal/bell":        {},
	"internal/beneath":     {},
	"internal/seal":        {"internal/beneath"},
	"internal/cache":       {},
	"internal/fair":        {},
	"internal/lazy":        {},
	"internal/sampled":     {},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	root, used := "..", map[permission]bool{}
	for _, top := range []string{"cmd", "internal", "api", "bench", "test"} {
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
			checkFile(t, file, path.Dir(filepath.ToSlash(rel)), used)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for key, all := range allowed {
		for _, a := range all {
			if !used[permission{key, a}] {
				t.Errorf("no package of %s needs to import %s; drop the permission", key, a)
			}
		}
	}
}

// A permission is one of those in allowed.
type permission struct{ from, to string }

func checkFile(t *testing.T, file, dir string, used map[permission]bool) {
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
		if ours && !mayImport(key, name, used) {
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

// mayImport also notes the permission that allows it: the first one.
func mayImport(key, name string, used map[permission]bool) bool {
	if within(name, key) || name == "internal/lazy" { // every package may use it, as the standard library
		return true
	}
	for _, a := range allowed[key] {
		if within(name, a) {
			used[permission{key, a}] = true
			return true
		}
	}
	return false
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// The rules themselves point one way: no two directories allow each other.
func TestRulesHaveNoCycle(t *testing.T) {
	t.Parallel()
	state := map[string]int{} // 1 entered, 2 done
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

// parsers are packages that read programs, or run them.
var parsers = []string{"go/parser", "go/types", "go/scanner", "golang.org/x/tools/go", "github.com/traefik/yaegi",
	module + "internal/runtime/gate", module + "internal/runtime/sandbox/worker"}

// confined are the packages that may reach a parser: those that read programs, which run in confined processes and at
// build time, and package main, which is the daemon or a runner.
var confined = []string{module + "internal/runtime/gate", module + "internal/runtime/sandbox/worker", module + "cmd"}

// harmless are packages below the parsers that hold data only.
var harmless = []string{module + "internal/runtime/gate/report", module + "internal/runtime/gate/rt",
	module + "internal/runtime/gate/allow"}

// judge is the package that finds the program in a model's reply: whether a text parses says that it is one. It bounds
// what it parses, and uses the parser for nothing else (docs/decisions/0038).
const judge = module + "internal/runtime/provider/reply"

// The daemon parses what a model wrote to find the program in a reply, and never otherwise: no other package of it
// reaches a parser, directly or not.
func TestDaemonParsesNoProgram(t *testing.T) {
	t.Parallel()
	imports := importGraph(t)
	imports[judge] = slices.DeleteFunc(imports[judge], func(name string) bool {
		return within(name, "go") &&
			name != "go/types"
	})
	for name := range imports {
		if !strings.HasPrefix(name, module) || withinAny(name, confined) {
			continue
		}
		if way := wayTo(imports, name, func(to string) bool {
			return withinAny(to, parsers) &&
				!withinAny(to, harmless)
		}); way != nil {
			t.Errorf("a program can be parsed outside a runner: %s", strings.Join(way, " → "))
		}
	}
	for name, all := range imports {
		if slices.Contains(all, module+"internal/runtime/sandbox/worker") && !within(name, module+"cmd") {
			t.Errorf("%s imports the sandbox's worker; packages main alone may", name)
		}
	}
	for _, name := range harmless {
		if len(imports[name]) == 0 && name != module+"internal/runtime/gate/report" {
			t.Errorf("there is no package %s", name)
		}
		if way := wayTo(imports, name, func(to string) bool {
			return to != name &&
				withinAny(to, parsers)
		}); way != nil {
			t.Errorf("%s is no mere data: %s", name, strings.Join(way, " → "))
		}
	}
}

// importGraph returns what each package that is linked into the binary, or into a generator, imports.
func importGraph(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{range .Imports}}{{.}} {{end}}", "./cmd/...",
		"./internal/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	graph := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		graph[words[0]] = words[1:]
	}
	if len(graph[module+"cmd/recurgentd"]) == 0 {
		t.Fatal("go list does not list package main")
	}
	return graph
}

// wayTo returns the shortest way of imports from a package to one that is sought, nil where there is none.
func wayTo(imports map[string][]string, from string, sought func(string) bool) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if sought(at) {
			var way []string
			for ; at != ""; at = came[at] {
				way = append([]string{at}, way...)
			}
			return way
		}
		for _, next := range imports[at] {
			if _, seen := came[next]; !seen {
				came[next] = at
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func withinAny(name string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(name, dir) })
}

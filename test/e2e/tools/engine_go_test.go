package tools

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A goCase is a method, its program, and how its calls end.
type goCase struct {
	source string
	value  any    // where it answers
	fails  string // the error type, where it does not
	says   string // part of the message of the last attempt
}

// goCases are programs that an interpreter cannot run as the compiler does, or that end badly.
func goCases() map[string]goCase {
	return map[string]goCase{
		"add": {source: rig.Program("\ta, _ := call.Args[0].(float64)\n\treturn a + 1, nil"), value: 4},
		"min": {source: "package tool\n\nimport (\n\t\"recurgent\"\n\t\"strings\"\n)\n\nvar words = strings.Fields(\"a b\")\n\nfunc min(a, b int) int {\n\tif a < b {\n\t\treturn a\n\t}\n\treturn b\n}\n\nfunc Run(call *recurgent.Call) (any, error) { return min(len(words), 7) + len(call.Args), nil }", value: 3},
		"clock": {source: rig.Program("\ta := time.Now()\n\treturn time.Now().Equal(a) && len(call.Args) == 1, nil",
			"time"), value: true},
		"order": {source: "package tool\n\nimport (\n\t\"encoding/binary\"\n\t\"recurgent\"\n)\n\nvar order = binary.LittleEndian\n\nfunc Run(call *recurgent.Call) (any, error) { return int(order.Uint16([]byte{2, 1})) + len(call.Args), nil }", value: 259},
		"leftover": {source: rig.Program(
			"\twas := unicode.Is(unicode.Scripts[\"Greek\"], 'a')\n\tm := unicode.Scripts\n\tm[\"Greek\"] = unicode.Latin\n\treturn !was && len(call.Args) == 1, nil", "unicode"), value: true},
		"index": {source: rig.Program("\tx := []int{1}\n\treturn x[len(call.Args)+1], nil"), fails: "execution",
			says: "index out of range [2] with length 1 (program.go:"},
		"recursion": {source: rig.Program(
			"\tvar f func(n int) int\n\tf = func(n int) int { return f(n+1) + 1 }\n\treturn f(0), nil"),
			fails: "resource_exhausted", says: "recursion"},
		"deadlock": {source: rig.Program("\treturn <-make(chan int), nil"), fails: "execution",
			says: "waits for something that can never happen"},
		"memory": {source: rig.Program(
			"\tvar all [][]byte\n\tfor {\n\t\tb := make([]byte, 1<<20)\n\t\tfor i := range b {\n\t\t\tb[i] = 1\n\t\t}\n\t\tall = append(all, b)\n\t}"), fails: "resource_exhausted", says: "memory"},
	}
}

// The compiler makes an executable of each program at its first call. From then on that answers, also after a restart,
// and is made again where it is gone.
func TestEngineGo(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles the packages that programs import")
	}
	t.Parallel()
	s := rig.Script{}
	for method, c := range goCases() {
		s["compiled."+method] = []any{c.source}
	}
	d := rig.StartIn(t, rig.NewModel(t, s), []string{rig.OwnCompiler}, "--policy", "repair_enabled=false")
	session := d.Session("compiled")
	for method, c := range goCases() {
		r := d.Call(session, method, 3)
		if c.fails != "" {
			if r.Outcome.ErrorType != c.fails || !strings.Contains(last(d, r), c.says) {
				t.Errorf("%s: got %+v, %s; want %s, %q", method, r.Outcome, last(d, r), c.fails, c.says)
			}
			continue
		}
		d.WantValue(r, c.value, "generated")
		if r.Program.Engine != "go" || r.Program.Tier != "native" || r.Program.BuildMs <= 0 {
			t.Errorf("%s: the first call: %+v", method, r.Program)
		}
		r = d.Call(session, method, 3)
		d.WantValue(r, c.value, "persisted")
		if r.Program.Engine != "go" || r.Program.BuildMs != 0 {
			t.Errorf("%s: the second call: %+v", method, r.Program)
		}
	}
	if n := d.Metric(`recurgent_builds_total{outcome="ok"}`); n != float64(len(goCases())) {
		t.Errorf("%v programs were compiled", n)
	}
	if n := d.Metric("recurgent_program_cache_bytes"); n < 1<<20 {
		t.Errorf("%v bytes are kept", n)
	}

	d.Stop(syscall.SIGTERM)
	d.Start()
	d.WantValue(d.Call(session, "add", 3), 4, "persisted")
	if n := d.Metric("recurgent_builds_total"); n != 0 {
		t.Errorf("after a restart %v programs were compiled", n)
	}

	d.Stop(syscall.SIGTERM)
	removeExecutables(t, d)
	d.Start()
	r := d.Call(session, "add", 3)
	d.WantValue(r, 4, "persisted")
	if r.Program.BuildMs <= 0 {
		t.Errorf("its executable was gone: %+v", r.Program)
	}
}

// A program that needs more than a build may have is refused with a text that says so, and repaired. The same program
// is not compiled again, also after a restart.
func TestProgramsTooLargeToCompile(t *testing.T) {
	t.Parallel()
	own := "\t_ = " + strconv.Quote(rand.Text()) + "\n" // so that nobody has compiled it before
	large := rig.Program(own +
		"\ttable := [80 << 20]byte{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 80<<20 - 1: 7}\n\treturn table[len(call.Args)], nil")
	m := rig.NewModel(t, rig.Script{"tables.look": {large, rig.Program(own + "\treturn len(call.Args) + 1, nil")},
		"tables.again": {large}, "tables.later": {large}})
	d := rig.Start(t, m)
	session := d.Session("tables")
	d.WantValue(d.Call(session, "look", 3), 2, "generated")
	said := m.LastQuestion().User
	if !strings.Contains(said, "the program is too large to compile") || !strings.Contains(said, "64 MiB") {
		t.Errorf("the model reads %s", said)
	}
	d.Policy(map[string]any{"guardrail_recovery_budget": 0})
	d.WantError(d.Call(session, "again", 3), "invalid_code")
	if n := d.Metric(`recurgent_builds_total{outcome="refused"}`); n != 1 {
		t.Errorf("it was compiled %v times", n)
	}
	d.Restart()
	d.WantError(d.Call(session, "later", 3), "invalid_code")
	if n := d.Metric(`recurgent_builds_total{outcome="refused"}`); n != 0 {
		t.Errorf("after a restart it was compiled %v times", n)
	}
}

// last is what the last attempt of the call failed with.
func last(d *rig.Daemon, r rig.Reply) string {
	attempts, _ := d.LogOf(r)["attempt_failures"].([]any)
	if len(attempts) == 0 {
		return r.Outcome.ErrorMessage
	}
	one, _ := attempts[len(attempts)-1].(map[string]any)
	text, _ := one["error_message"].(string)
	return text
}

// removeExecutables removes what the daemon has compiled.
func removeExecutables(t *testing.T, d *rig.Daemon) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(d.State(), "native", "cache", "exe", "*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no executables: %v", err)
	}
	for _, file := range all {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// Without a compiler the daemon prints the reason and does not start.
func TestEngineGoWithoutCompiler(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := append(rig.Environment(dir), "PATH="+dir)
	_, errs, code := rig.Run(t, env, "serve", "--engine=go", "--listen", "127.0.0.1:0")
	if code != 2 || !strings.Contains(errs, "engine: go cannot compile programs here") ||
		!strings.Contains(errs, "no go command on PATH") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

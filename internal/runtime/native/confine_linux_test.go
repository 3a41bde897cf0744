package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
)

const (
	probePath = "github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
	nowPath   = "github.com/recurgentd/recurgentd/internal/runtime/sandbox/narrow/now"
)

// probing is a text whose package, with the given name, makes the canary's probes during initialization: code that no
// gate has seen.
const probing = `package %s

import %q

var Seen = probe.Launched(probe.Bounds{Parent: %d, Data: %d, Mapped: %d})
`

// telling is the rest of a program that returns what the probes saw.
const telling = `
var RecurgentNativeProgram = support.Program{Source: "probes", Reset: func() {}, Run: func(*recurgent.Call) (any, error) { return %s, nil }}
`

// An executable is confined from its first instruction on. What the canary must not do, initialization cannot do
// either: neither a program's own, nor that of a package initialized before all others which replaces the narrowing.
func TestExecutableIsConfined(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	_, p := builder(t)
	memory := sandbox.DefaultOptions().Memory
	text := func(name string) string {
		return fmt.Sprintf(probing, name, probePath, os.Getpid(), memory+64<<20, 4<<30+4*memory)
	}
	const supportPath = "github.com/recurgentd/recurgentd/internal/runtime/native/support"
	planted := filepath.Join(t.TempDir(), "now.go")
	if err := os.WriteFile(planted, []byte(text("now")), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root,
		"internal/runtime/sandbox/narrow/now/now.go"): planted}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	imports := fmt.Sprintf("import (\n\tsupport %q\n\t%q\n\t\"recurgent\"\n", supportPath, probePath)
	own := strings.Replace(text("tool"), fmt.Sprintf("import %q\n", probePath), imports+")\n", 1) + fmt.Sprintf(telling,
		"Seen")
	other := fmt.Sprintf("package tool\n\nimport (\n\tsupport %q\n\t%q\n\t\"recurgent\"\n)\n", supportPath, nowPath) +
		fmt.Sprintf(telling, "now.Seen")
	for _, c := range []struct{ name, text, overlay, again string }{{"an init of the program", own, "",
		"denied (EPERM)"}, {"a planted first init", other, overlayFile, "denied (EFAULT)"}} {
		t.Run(c.name, func(t *testing.T) {
			b := ownBuilder(t)
			if err := native.AddPackages(t.Context(), b, root, c.overlay, "golang.org/x/sys/unix", probePath, nowPath,
				supportPath); err != nil {
				t.Fatal(err)
			}
			path, err := b.BuildMany(t.Context(), "probes", []string{c.text})
			if err != nil {
				t.Fatal(err)
			}
			if again := wantDenied(t, p, path, "probes")[probe.Again]; again != c.again {
				t.Errorf("%s is %s, want %s", probe.Again, again, c.again)
			}
		})
	}
}

// ownBuilder returns a builder whose packages a test may spoil.
func ownBuilder(t *testing.T) *native.Builder {
	t.Helper()
	_, p := builder(t)
	o := native.DefaultOptions()
	var err error
	if o.Toolchain, err = native.Find(""); err != nil {
		t.Fatal(err)
	}
	o.Dir, o.Sources, o.Run = t.TempDir(), runtime.NativeSources, p.RunTools
	if o.Key, err = keyIn(o.Dir); err != nil {
		t.Fatal(err)
	}
	b, err := native.New(o)
	if err != nil {
		t.Fatal(err)
	}
	native.ShareGoCache(b, goCache(t))
	return b
}

// wantDenied runs the executable, whose value is the outcome of its probes, and returns that.
func wantDenied(t *testing.T, p *sandbox.Pool, path, source string) (outcomes map[string]string) {
	t.Helper()
	shared.made.Add(agent.Checksum(path), path, nil)
	got := p.Run(t.Context(),
		sandbox.Request{Program: sandbox.Program{Source: source, Checksum: agent.Checksum(path)},
			Owner: agent.Owner{Name: "o"}, Role: "tester", Method: "run", CallID: "c",
			Now: time.Unix(1790000000, 0), Timeout: time.Minute}, host{})
	if err := json.Unmarshal(got.Value, &outcomes); err != nil {
		t.Fatalf("%v: %+v", err, got.Failure)
	}
	for name, outcome := range outcomes {
		if !strings.HasPrefix(outcome, "denied") {
			t.Errorf("%s: %q", name, outcome)
		}
	}
	for name := range p.Status().Probes {
		// The canary makes these before the last layer is on.
		if _, ok := outcomes[name]; !ok && !strings.HasPrefix(name, "netns: ") &&
			!strings.HasPrefix(name, "landlock: ") {
			t.Errorf("%s was not tried", name)
		}
	}
	if len(outcomes) < 100 {
		t.Errorf("only %d probes", len(outcomes))
	}
	return outcomes
}

// initText is a package that can make probes at its start.
const initText = `package %s

import (
	support "github.com/recurgentd/recurgentd/internal/runtime/native/support"
	%q
	"recurgent"
)

func probes() map[string]string { return probe.Launched(probe.Bounds{Parent: %d, Data: %d, Mapped: %d}) }

%s

var RecurgentNativeProgram = support.Program{Source: %q, Reset: func() {}, Run: func(*recurgent.Call) (any, error) { return %s, nil }}
`

// inits maps names to ways in which code could run before the first call, with the variable that holds the outcomes. No
// program that has passed the gate contains any of them.
var inits = map[string]struct{ code, seen string }{
	"a variable":                {"var seen = probes()", "seen"},
	"a generic function":        {"func of[T any](f func() T) T { return f() }\n\nvar seen = of(probes)", "seen"},
	"a method of a type's":      {"type box[T any] struct{ v func() T }\n\nfunc (b box[T]) open() T { return b.v() }\n\nvar seen = box[map[string]string]{probes}.open()", "seen"},
	"a literal that runs":       {"var seen = func() map[string]string { defer func() { recover() }(); return probes() }()", "seen"},
	"an init":                   {"var seen map[string]string\n\nfunc init() { seen = probes() }", "seen"},
	"an init that prints":       {"var seen map[string]string\n\nfunc init() { println(\"fatal error: all goroutines are asleep - deadlock!\"); seen = probes() }", "seen"},
	"an init that recovers":     {"var seen map[string]string\n\nfunc init() {\n\tdefer func() { recover(); seen = probes() }()\n\tpanic(\"init\")\n}", "seen"},
	"a goroutine that goes on":  {"var later = make(chan map[string]string, 1)\n\nfunc init() { go func() { later <- probes() }() }", "<-later"},
	"a goroutine of a variable": {"var later = func() chan map[string]string { c := make(chan map[string]string); go func() { c <- probes() }(); return c }()", "<-later"},
}

// Code that runs while an executable starts reaches nothing.
func TestInitsReachNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	b, p := proberBuilder(t)
	text := func(name string, at int, code, seen string) string {
		memory := sandbox.DefaultOptions().Memory
		return fmt.Sprintf(initText, name, probePath, os.Getpid(), memory+64<<20, 4<<30+4*memory, code,
			fmt.Sprint("probes ", at), seen)
	}
	var texts, names []string
	for name, c := range inits {
		texts, names = append(texts, text("tool", len(texts), c.code, c.seen)), append(names, name)
	}
	path, err := b.BuildMany(t.Context(), "inits", texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			if again := wantDenied(t, p, path, fmt.Sprint("probes ", i))[probe.Again]; again != "denied (EPERM)" {
				t.Errorf("%s is %s", probe.Again, again)
			}
		})
	}
	for name, code := range map[string]string{"exits": "var exits = func() int { syscall.Exit(0); return 0 }()",
		"panics": "func init() { panic(1) }", "waits": "func init() { select {} }"} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(text("tool", 0, code, "probes()"), "import (\n", "import (\n\t\"syscall\"\n", 1) +
				"\nvar _ = syscall.Exit\n"
			path, err := b.BuildMany(t.Context(), "init that "+name, []string{text})
			if err != nil {
				t.Fatal(err)
			}
			if got := run(t, p, "a program that "+name, path, "[]"); got.Failure == nil || got.Value != nil {
				t.Errorf("got %s, %+v", got.Value, got.Failure)
			}
		})
	}
}

// proberBuilder returns a builder whose texts may import package probe.
func proberBuilder(t *testing.T) (*native.Builder, *sandbox.Pool) {
	t.Helper()
	_, p := builder(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	b := ownBuilder(t)
	if err := native.AddPackages(t.Context(), b, root, "", "golang.org/x/sys/unix", probePath); err != nil {
		t.Fatal(err)
	}
	return b, p
}

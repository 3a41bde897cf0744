package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
)

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

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

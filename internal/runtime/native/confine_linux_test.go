package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// probing is a text whose program has the canary's probes: code that no gate has seen.
const probing = `package tool

import (
	support "github.com/recurgentd/recurgentd/internal/runtime/native/support"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"
	"recurgent"
)

var RecurgentNativeProgram = support.Program{Source: "probes", Facts: "{}", Reset: func() {}, Run: func(*recurgent.Call) (any, error) {
	return probe.All(probe.Bounds{Parent: %d, Data: %d, Mapped: %d}), nil
}}
`

// An executable is confined as a runner is: what the canary must not do, code in an executable cannot do either.
func TestExecutableIsConfined(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	b, p := builder(t)
	if err := native.AddPackages(t.Context(), b, "../../..", "golang.org/x/sys/unix", "github.com/recurgentd/recurgentd/internal/runtime/sandbox/probe"); err != nil {
		t.Fatal(err)
	}
	memory := sandbox.DefaultOptions().Memory
	path, err := native.BuildMany(t.Context(), b, "probes", []string{fmt.Sprintf(probing, os.Getpid(), memory+64<<20, 4<<30+4*memory)})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := run(t, p, "probes", executable(t, path), "[]")
	var outcomes map[string]string
	if err := json.Unmarshal([]byte(got.Value), &outcomes); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	probed := 0
	for name := range p.Status().Probes {
		if strings.HasPrefix(name, "netns: ") || strings.HasPrefix(name, "landlock: ") { // made before the last layer is on
			continue
		}
		probed++
		if !strings.HasPrefix(outcomes[name], "denied") {
			t.Errorf("%s: %q", name, outcomes[name])
		}
	}
	if probed < 90 {
		t.Errorf("only %d probes", probed)
	}
}

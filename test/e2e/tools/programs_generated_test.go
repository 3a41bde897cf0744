package tools

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/native"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Generated programs return over HTTP what they return natively: none differs, none is refused, and no runner is lost.
// HTTP_PROGRAMS says how many, HTTP_SEED where to begin.
func TestGeneratedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated programs over HTTP, against the toolchain")
	}
	t.Parallel()
	count, first := rig.Number(t, "HTTP_PROGRAMS", 40), rig.Number(t, "HTTP_SEED", 20001)
	t.Logf("HTTP_SEED=%d HTTP_PROGRAMS=%d", first, count)
	for n := 0; n < count; n += 50 {
		var programs []generate.Program
		for i := n; i < min(n+50, count); i++ {
			programs = append(programs, generate.Write(uint64(first+i)))
		}
		wants, err := native.Run(programs)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, programs, wants)
	}
}

// serve starts a daemon, has a model write the programs, calls each of them twice, and compares.
func serve(t *testing.T, programs []generate.Program, wants []native.Result) {
	script := rig.Script{}
	for _, p := range programs {
		script[fmt.Sprintf("generated.p%d", p.Seed)] = []any{p.Source()}
	}
	d := rig.Start(t, rig.NewModel(t, script))
	s := d.Session("generated")
	for i, p := range programs {
		if wants[i].Name == native.Refused || wants[i].Name == native.Dies {
			t.Logf("seed %d: natively %s %s", p.Seed, wants[i].Name, wants[i].Panic)
			continue
		}
		var want any
		if err := json.Unmarshal(wants[i].Value, &want); err != nil {
			t.Fatalf("seed %d: natively %+v: %v", p.Seed, wants[i], err)
		}
		for _, source := range []string{"generated", "persisted"} {
			got := d.Call(s, fmt.Sprintf("p%d", p.Seed))
			switch o := got.Outcome; {
			case !o.OK:
				t.Errorf("seed %d, %s: %s: %s", p.Seed, source, o.ErrorType, o.ErrorMessage)
			case !rig.Equal(want, o.Value):
				t.Errorf("seed %d, %s: got another value: %s", p.Seed, source, firstDifference(o.Value, want))
			case got.Program.Source != source || got.Attempts != 1:
				t.Errorf("seed %d: source %s after %d attempts, want %s after one", p.Seed, got.Program.Source,
					got.Attempts, source)
			}
		}
	}
	wantNoneLost(t, d)
}

// firstDifference shows the first line of two logs that is not the same.
func firstDifference(got, want any) string {
	a, _ := got.([]any)
	b, _ := want.([]any)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d: got %v, natively %v", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, natively %d", len(a), len(b))
}

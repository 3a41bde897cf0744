package yaegi

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// generatedCalls is what every generated program is called with.
func generatedCalls(t testing.TB) []recurgent.Input {
	var out []recurgent.Input
	for _, args := range []string{
		`[7, "héllo, Wörld 1 22", true, [1, 2.5, "x", null, [3]], {"a": 1, "b": "q", "n": null}, null, -3.5]`,
		`["a", 2, {"a": [1]}, false, "12", [], 1e300]`,
		`[]`,
	} {
		in := recurgent.Input{Role: "tester", Method: "run"}
		if err := json.Unmarshal([]byte(args), &in.Args); err != nil {
			t.Fatal(err)
		}
		if len(out) == 0 {
			in.Kwargs = map[string]json.RawMessage{"a": []byte("1.5"), "n": []byte(`"kw"`), "s": []byte(`[1,"b"]`), "b": []byte("true")}
			in.Context = map[string]any{"n": 3.0, "a": "ctx", "b": map[string]any{"x": 1.0}}
		}
		out = append(out, in)
	}
	return out
}

// TestDifferentialPlain runs generated programs on both engines, wherever gate.Choose gives them to yaegi: those without loops, and, as
// the setting "yaegi" has it, those with loops. YAEGI_PROGRAMS says how many of each, YAEGI_SEED where to begin. A difference is shown
// with the smallest program that has it.
func TestDifferentialPlain(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	for _, setting := range []string{report.EngineAuto, report.EngineYaegi} {
		t.Run(setting, func(t *testing.T) { differential(t, setting) })
	}
}

func differential(t *testing.T, setting string) {
	count, first := 300, uint64(1)
	if s := os.Getenv("YAEGI_PROGRAMS"); s != "" {
		count, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("YAEGI_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := generatedCalls(t)
	reasons, refused, ran, differ := map[string]int{}, 0, 0, 0
	for seed := first; seed < first+uint64(count); seed++ {
		source := generate(seed, setting == report.EngineYaegi)
		p, refusal := g.Check(source)
		if refusal != nil {
			refused++
			if os.Getenv("YAEGI_SHOW") != "" {
				t.Logf("seed %d: %s %q\n%s", seed, refusal.Message, refusal.Errors, source)
			}
			continue
		}
		if why := gate.WhyNotYaegi(p, setting); why != "" {
			reasons[why]++
			continue
		}
		ran++
		if d := difference(t, p, calls); d != "" {
			differ++
			if strings.Contains(d, "does not end") {
				t.Fatalf("seed %d: %s\n%s", seed, d, source)
			}
			small := reduce(source, func(s string) bool {
				p, refusal := g.Check(s)
				return refusal == nil && gate.WhyNotYaegi(p, setting) == "" && difference(t, p, calls) != ""
			})
			p, _ := g.Check(small)
			t.Errorf("seed %d: %s\n%s", seed, difference(t, p, calls), small)
			if differ >= 12 {
				break
			}
		}
	}
	t.Logf("%d programs run, %d refused, on ssa: %v", ran, refused, reasons)
}

// difference runs a program's calls twice over on both engines and returns the first that ends in two ways.
func difference(t testing.TB, p *gate.Program, calls []recurgent.Input) string {
	c, err := Compile(p)
	if err != nil {
		return "" // the runner gives what yaegi refuses to the other engine
	}
	defer c.Close()
	s, err := interp.Compile(p)
	if err != nil {
		return "ssa: " + err.Error()
	}
	defer s.Close()
	for range 2 {
		for i, in := range calls {
			var got, want end
			done := make(chan struct{})
			go func() { defer close(done); got = run(t, c, in) }()
			select {
			case <-done:
			case <-time.After(time.Minute):
				return "yaegi does not end"
			}
			if want = run(t, s, in); got != want {
				return fmt.Sprintf("call %d: got %+v\nwant %+v", i, got, want)
			}
			if c.retold != (want.Panic != "") {
				return fmt.Sprintf("call %d: yaegi alone panics: %v", i, c.why(t, in))
			}
		}
	}
	return ""
}

// why returns what a run panics with in this interpreter.
func (c *Compiled) why(t testing.TB, in recurgent.Input) any {
	call, err := recurgent.New(in, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, r, _ := c.once(call)
	return r
}

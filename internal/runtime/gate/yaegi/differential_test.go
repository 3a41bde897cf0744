package yaegi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/compiled"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// generatedCalls returns the inputs with which every generated program is called.
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
			in.Kwargs = map[string]json.RawMessage{"a": []byte("1.5"), "n": []byte(`"kw"`), "s": []byte(`[1,"b"]`),
				"b": []byte("true")}
			in.Context = map[string]any{"n": 3.0, "a": "ctx", "b": map[string]any{"x": 1.0}}
		}
		out = append(out, in)
	}
	return out
}

// The test binary is its own runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == wire.RunnerArg {
		os.Exit(worker.Main())
	}
	code := m.Run()
	if b, err := bench(); shared && err == nil {
		_ = b.Close() // the tests have ended
	}
	os.Exit(code)
}

var (
	shared bool // whether a test has asked for the bench
	bench  = sync.OnceValues(func() (*compiled.Bench, error) {
		shared = true
		o := sandbox.DefaultOptions()
		o.Blank, o.Native = 0, true
		return compiled.New(o)
	})
)

// batchSize is the number of programs in one executable.
const batchSize = 50

// TestDiffPlain compares generated programs on yaegi, where the gate allows it, with the same programs compiled.
// YAEGI_PROGRAMS is the number of programs, YAEGI_SEED the first seed. A difference is shown with the smallest program
// that has it.
func TestDiffPlain(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	count, first := 100, uint64(1)
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
	runs := func(source string) bool {
		p, refusal := g.Check(source)
		return refusal == nil && gate.WhyNotYaegi(p) == ""
	}
	ran, differ := 0, 0
	var batch []program
	for seed := first; seed < first+uint64(count) && differ < 12; seed++ {
		if source := generate(seed, seed%2 == 0); runs(source) {
			batch = append(batch, program{fmt.Sprintf("seed %d", seed), source, calls})
		}
		if len(batch) < batchSize && seed+1 < first+uint64(count) {
			continue
		}
		ran += len(batch)
		for i, d := range differences(t, batch) {
			if d == "" {
				continue
			}
			differ++
			small := batch[i]
			small.source = reduce(small.source, func(s string) bool {
				return runs(s) && differences(t, []program{{small.name, s, calls}})[0] != ""
			})
			t.Errorf("%s: %s\nmade small: %s\n%s", small.name, d, differences(t, []program{small})[0], small.source)
		}
		batch = nil
	}
	t.Logf("%d of %d programs run", ran, count)
}

// differences runs the calls of each program twice over, on yaegi and compiled, and returns the first that ends
// differently, or "".
func differences(t testing.TB, programs []program) []string {
	t.Helper()
	b, err := bench()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(programs))
	for start := 0; start < len(programs); start += batchSize {
		batch := programs[start:min(start+batchSize, len(programs))]
		var sources []string
		for _, p := range batch {
			sources = append(sources, p.source)
		}
		refused, err := b.Build(t.Context(), sources)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range batch {
			if refused[i] != nil {
				out[start+i] = "it is not compiled: " + refused[i].Error()
				continue
			}
			out[start+i] = difference(t, b, p)
		}
		if err := b.Forget(); err != nil {
			t.Error(err)
		}
	}
	return out
}

func difference(t testing.TB, b *compiled.Bench, p program) string {
	c, err := yaegi.Compile(check(t, p.source))
	if err != nil {
		return "" // the runner refuses it
	}
	for round := range 2 {
		for i, in := range p.calls {
			got := make(chan end, 1)
			go func() { got <- run(t, c, in) }()
			select {
			case got := <-got:
				if want := runCompiled(t, b, p.source, in); got != want {
					return fmt.Sprintf("round %d, call %d: got %+v\nwant %+v", round, i, got, want)
				}
			case <-time.After(time.Minute):
				return "yaegi does not end"
			}
		}
	}
	return ""
}

// Package diff holds the differential test of compiled programs. A program that the gate has checked, package rewrite
// has changed and the daemon's processes run must return what the same text returns as a plain Go program. The programs
// are those of testdata/corpus, where every difference that somebody finds is added, and generated ones.
package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/compiled"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

type result = native.Result

const hostSources = "../../recurgent"

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

// TestDiffCorpus compares every call of the programs in the corpus with its native run: one program of DIFF_EVERY, or
// those whose names contain one of the parts in DIFF_ONLY, which are separated by commas.
func TestDiffCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	programs, err := corpus.Read("testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	compareEntries(t, sample(t, programs))
}

// sample returns the entries that run.
func sample(t *testing.T, all []corpus.Entry) (out []corpus.Entry) {
	t.Helper()
	every := 10
	if s := os.Getenv("DIFF_EVERY"); s != "" {
		every, _ = strconv.Atoi(s)
	}
	only := os.Getenv("DIFF_ONLY")
	for i, e := range all {
		named := slices.ContainsFunc(strings.Split(only, ","),
			func(part string) bool { return strings.Contains(e.Name, part) })
		if only != "" && named || only == "" && i%every == 0 {
			out = append(out, e)
		}
	}
	t.Logf("%d of %d programs", len(out), len(all))
	return out
}

// compareEntries runs the calls of programs here and natively.
func compareEntries(t *testing.T, programs []corpus.Entry) {
	t.Helper()
	want, err := native.RunEntries(t.TempDir(), hostSources, programs)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bench()
	if err != nil {
		t.Fatal(err)
	}
	for batch := range slices.Chunk(programs, batchSize) {
		var sources []string
		for _, e := range batch {
			sources = append(sources, e.Source)
		}
		refused, err := b.Build(t.Context(), sources)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range batch {
			if refused[i] != nil {
				t.Errorf("%s: %v", e.Name, refused[i])
				continue
			}
			for k, args := range e.Calls {
				name := fmt.Sprintf("%s#%d", e.Name, k)
				if d := difference(runHere(t, b, e.Source, args), want[name]); d != "" {
					t.Errorf("%s: %s", name, d)
				}
			}
		}
		if err := b.Forget(); err != nil {
			t.Error(err)
		}
	}
}

// difference describes how the outcome of a call here differs from the native one, or returns "" if they are the same.
func difference(got, want result) string {
	switch {
	case got.Panic != want.Panic:
		return fmt.Sprintf("got panic %q\nnatively %q", got.Panic, want.Panic)
	case got.Line != want.Line:
		return fmt.Sprintf("got the panic %q in line %d\nnatively in %d", got.Panic, got.Line, want.Line)
	case got.Error != want.Error || got.Type != want.Type:
		return fmt.Sprintf("got error %q (%s)\nnatively %q (%s)", got.Error, got.Type, want.Error, want.Type)
	case lost(got, want):
		return ""
	case got.Encode != want.Encode:
		return fmt.Sprintf("got encoding error %q\nnatively %q", got.Encode, want.Encode)
	case !sameJSON(got.Value, want.Value):
		return fmt.Sprintf("got another value%s", firstDifference(got.Value, want.Value))
	case want.Panic == "" && want.Error == "" && want.Encode == "" && !sameJSON(got.Context, want.Context):
		return fmt.Sprintf("got context %s\nnatively %s", got.Context, want.Context)
	}
	return ""
}

// lost reports whether the call is refused here because a value would lose all that it holds: natively it is {}.
func lost(got, want result) bool {
	return strings.HasSuffix(got.Encode, "all that it holds would be lost") && want.Encode == "" && want.Panic == "" &&
		want.Error == "" && bytes.Contains(want.Value, []byte("{}"))
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// firstDifference returns the key or index at which two objects or arrays differ.
func firstDifference(a, b json.RawMessage) string {
	var x, y map[string]any
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil {
		out := ""
		for k := range y {
			if !reflect.DeepEqual(x[k], y[k]) {
				out += fmt.Sprintf("\n  key %q: got %v, natively %v", k, x[k], y[k])
			}
		}
		return out
	}
	var s, u []any
	if json.Unmarshal(a, &s) == nil && json.Unmarshal(b, &u) == nil {
		for i := range min(len(s), len(u)) {
			if !reflect.DeepEqual(s[i], u[i]) {
				return fmt.Sprintf("\n  index %d: got %v, natively %v", i, s[i], u[i])
			}
		}
	}
	return fmt.Sprintf("\n%.2000s\nnatively\n%.2000s", a, b)
}

// atLine matches the text of a panic with its line.
var atLine = regexp.MustCompile(`(?s)^panic: (.*?)(?: \(program\.go:(\d+)\))?$`)

// runHere runs a call of a program that was built.
func runHere(t testing.TB, b *compiled.Bench, source, args string) (r result) {
	t.Helper()
	req := sandbox.Request{Now: time.Unix(1790000000, 0), Seed: 7, Timeout: time.Minute}
	if err := json.Unmarshal([]byte(args), &req.Args); err != nil {
		t.Fatal(err)
	}
	res := b.Run(t.Context(), source, req, compiled.Host{})
	r.Value, r.Context = res.Value, contextOf(res.Context)
	if a := res.Authored; a != nil {
		r.Error, r.Type = a.Message, a.Type
	}
	if f := res.Failure; f != nil {
		m := atLine.FindStringSubmatch(f.Message)
		reason, formless := strings.CutPrefix(f.Message, "the result has no JSON form: ")
		switch {
		case m != nil:
			r.Panic = m[1]
			r.Line, _ = strconv.Atoi(m[2])
		case formless:
			r.Encode = reason
		default:
			r.Panic = fmt.Sprintf("%s (%s): %s", f.Type, f.Detail, f.Message)
		}
	}
	return r
}

// contextOf returns the context after a call that began with an empty one.
func contextOf(c *agent.ContextChange) json.RawMessage {
	all := map[string]json.RawMessage{}
	if c != nil {
		all = c.Set
	}
	out, _ := json.Marshal(all)
	return out
}

package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/native"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// host answers questions with what hardly matters.
type host struct{}

func (host) Call(_ context.Context, role, method string, args []json.RawMessage, _ json.RawMessage) agent.Outcome {
	return agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage(fmt.Sprintf("[%q,%q,%d]", role, method, len(args)))}
}

func (host) Refuse(_ context.Context, _, _ string, _ []json.RawMessage, _ json.RawMessage, reason string) agent.Outcome {
	return agent.Outcome{Status: agent.StatusError, ErrorType: agent.ErrNonSerializable, ErrorMessage: reason}
}

func (host) Delegate(context.Context, string, json.RawMessage) *sandbox.AuthoredError { return nil }

func (host) Predict(context.Context, json.RawMessage, json.RawMessage) (json.RawMessage, *sandbox.AuthoredError) {
	return nil, &sandbox.AuthoredError{Type: "provider", Message: "no model"}
}

func (host) Tools(context.Context) (json.RawMessage, error) { return json.RawMessage("{}"), nil }

func (host) History(context.Context, bool, bool, int, int) (json.RawMessage, error) {
	return json.RawMessage("[]"), nil
}

func (host) Content(context.Context, string) (json.RawMessage, error) { return nil, nil }

func (host) Revision(context.Context, string) int64 { return 1 }

// An end is how a run ended, as far as the caller and the journal see it.
type end struct {
	Value    string
	Authored *sandbox.AuthoredError
	Failure  *sandbox.Failure
	Context  *agent.ContextChange
	Journal  string
}

func (e end) String() string {
	raw, _ := json.Marshal(e)
	return string(raw)
}

// run runs a program once: on the executable, or on the engine where that is nil.
func run(t *testing.T, p *sandbox.Pool, source string, x *sandbox.Executable, args string) (end, *report.Facts) {
	t.Helper()
	req := sandbox.Request{Program: sandbox.Program{Source: source, Checksum: agent.Checksum(source)}, Owner: agent.Owner{Name: "o"}, Role: "tester", Method: "run", CallID: "c", Native: x,
		Now: time.Unix(1790000000, 0), Seed: 7, Timeout: 20 * time.Second, Context: map[string]json.RawMessage{"seen": json.RawMessage("[1,2]")}}
	if err := json.Unmarshal([]byte(args), &req.Args); err != nil {
		t.Fatal(err)
	}
	r := p.Run(t.Context(), req, host{})
	if x != nil && (r.Native != nil || r.Tier != sandbox.TierNative) {
		fault, _ := json.Marshal(r.Native)
		return end{Value: "the executable does not answer: " + string(fault)}, nil
	}
	return end{string(r.Value), r.Authored, r.Failure, r.Context, string(r.Effects.Journal)}, r.Facts
}

// manyAsOne finds the paths of programs that are not alone in their executable.
var manyAsOne = regexp.MustCompile(`\btool\d+\.`)

// A sample is a program with its calls.
type sample struct {
	name, source string
	calls        []string
}

// differences runs the samples on the engine and in one executable, and reports every call that ends otherwise. It returns how many programs have no
// native form.
func differences(t *testing.T, samples []sample) (refused int) {
	t.Helper()
	b, p := builder(t)
	var texts []string
	var kept []sample
	for _, s := range samples {
		text, err := p.NativeText(t.Context(), s.source)
		if errors.Is(err, sandbox.ErrNoNativeForm) {
			t.Logf("%s: %v", s.name, err)
			refused++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		texts, kept = append(texts, text), append(kept, s)
	}
	if len(texts) == 0 {
		return refused
	}
	path, err := native.BuildMany(t.Context(), b, strings.ReplaceAll(t.Name(), "/", "_"), texts)
	if err != nil {
		t.Fatal(err)
	}
	x := executable(t, path)
	for _, s := range kept {
		for i, args := range s.calls {
			want, facts := run(t, p, s.source, nil, args)
			x.Facts = facts
			got, _ := run(t, p, s.source, x, args)
			if got := manyAsOne.ReplaceAllString(got.String(), "tool."); got != want.String() {
				t.Errorf("%s, call %d: got\n%s\nthe engine\n%s", s.name, i, got, want)
			}
		}
	}
	return refused
}

func executable(t testing.TB, path string) *sandbox.Executable {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum, err := sandbox.Sum(f)
	if err != nil {
		t.Fatal(err)
	}
	return &sandbox.Executable{Path: path, Digest: sum}
}

// Programs of the corpus end in the same bytes in an executable and on the engine. NATIVE_EVERY takes every so many of them, NATIVE_ONLY those whose names
// contain it.
func TestCorpusNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	every := 40
	if s := os.Getenv("NATIVE_EVERY"); s != "" {
		every, _ = strconv.Atoi(s)
	}
	all, err := corpus.Read("../gate/diff/testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	for i, e := range all {
		if only := os.Getenv("NATIVE_ONLY"); strings.Contains(e.Name, only) && (only != "" || i%every == 0) {
			samples = append(samples, sample{e.Name, e.Source, e.Calls})
		}
	}
	t.Logf("%d of %d programs, %d have no native form", len(samples), len(all), differences(t, samples))
}

// Generated programs do so, too. NATIVE_PROGRAMS is their number, NATIVE_SEED the first seed.
func TestGeneratedNatively(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	count, first := 5, uint64(1)
	if s := os.Getenv("NATIVE_PROGRAMS"); s != "" {
		count, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("NATIVE_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	for n := 0; n < count; n += 25 {
		var samples []sample
		for i := n; i < min(n+25, count); i++ {
			p := generate.Write(first + uint64(i))
			samples = append(samples, sample{fmt.Sprintf("seed %d", p.Seed), p.Source(), []string{"[]"}})
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) { differences(t, samples) })
	}
}

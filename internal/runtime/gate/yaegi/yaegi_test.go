package yaegi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// A program is one of the corpus, of the recorded ones, or of this package's own, with the calls to compare.
type program struct {
	name, source string
	calls        []recurgent.Input
}

const (
	corpusFiles = "../diff/testdata/corpus/*.txt"
	recordedDir = "../diff/testdata/recorded/"
)

func corpus(t testing.TB) []program {
	t.Helper()
	files, err := filepath.Glob(corpusFiles)
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var out []program
	for _, name := range files {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			p := program{name: strings.TrimSuffix(filepath.Base(name), ".txt") + "/" + f.Name, source: string(f.Data)}
			for line := range strings.Lines(p.source) {
				if args, ok := strings.CutPrefix(strings.TrimSpace(line), "//args "); ok {
					p.add(t, args)
				}
			}
			if len(p.calls) == 0 {
				p.add(t, "[]")
			}
			out = append(out, p)
		}
	}
	return out
}

func (p *program) add(t testing.TB, args string) {
	t.Helper()
	in := recurgent.Input{Role: "tester", Method: "run"}
	if err := json.Unmarshal([]byte(args), &in.Args); err != nil {
		t.Fatalf("%s: %s: %v", p.name, args, err)
	}
	p.calls = append(p.calls, in)
}

func recorded(t testing.TB) []program {
	t.Helper()
	data, err := os.ReadFile("../diff/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	var tasks []struct {
		ID, Role, Method string
		Context          map[string]any
		Calls            []struct {
			Args   []json.RawMessage
			Kwargs map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &tasks); err != nil {
		t.Fatal(err)
	}
	var out []program
	for _, task := range tasks {
		source, err := os.ReadFile(recordedDir + task.ID + ".go.txt")
		if err != nil {
			t.Fatal(err)
		}
		p := program{name: "recorded/" + task.ID, source: string(source)}
		for _, c := range task.Calls {
			p.calls = append(p.calls, recurgent.Input{Role: task.Role, Method: task.Method, Args: c.Args, Kwargs: c.Kwargs, Context: task.Context})
		}
		out = append(out, p)
	}
	return out
}

// nobody answers a program's questions: there is no history and nothing else.
type nobody struct{}

func (nobody) Ask(op string, params, result any) error {
	if op != "history" {
		return &recurgent.Failure{Type: "denied", Message: "no " + op + " here"}
	}
	return json.Unmarshal([]byte("[]"), result)
}

type engine interface {
	Begin(now time.Time, seed uint64)
	Run(call *recurgent.Call) (any, error, *interp.Panic)
}

// An end is how a call ended, in words that can be compared.
type end struct {
	Value, Encode, Error, Type, Panic, Context string
}

func run(t testing.TB, e engine, in recurgent.Input) (out end) {
	t.Helper()
	context, err := json.Marshal(in.Context)
	if err != nil {
		t.Fatal(err)
	}
	in.Context = nil
	if err := json.Unmarshal(context, &in.Context); err != nil {
		t.Fatal(err)
	}
	call, err := recurgent.New(in, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	e.Begin(time.Unix(1790000000, 0), 1)
	value, err, panicked := e.Run(call)
	switch {
	case panicked != nil:
		out.Panic = fmt.Sprintf("line %d: %s: %s", panicked.Line, panicked.Class, panicked.Message)
	case err != nil:
		f := recurgent.AsFailure(err)
		out.Error, out.Type = f.Message, f.Type
	default:
		raw, err := interp.Encode(value)
		if err != nil {
			out.Encode = err.Error()
		}
		out.Value = string(raw)
	}
	after, err := json.Marshal(call.Context)
	if err != nil {
		t.Fatal(err)
	}
	out.Context = string(after)
	return out
}

func check(t testing.TB, source string) *gate.Program {
	t.Helper()
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, refusal := g.Check(source)
	if refusal != nil {
		t.Fatalf("refused: %s %q", refusal.Message, refusal.Errors)
	}
	return p
}

// plain returns this package's own small programs, each a body of Run that works on its arguments.
func plain(t testing.TB) []program {
	t.Helper()
	var out []program
	for _, p := range plainPrograms() {
		source := "package tool\n\n" + p.helpers + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + p.body + "\n}\n"
		pr := program{name: "plain/" + p.name, source: source}
		for _, args := range p.args {
			pr.add(t, args)
		}
		if len(p.args) == 0 {
			pr.add(t, "[]")
		}
		out = append(out, pr)
	}
	return out
}

// Every program that Choose gives to yaegi under either setting ends every call as the other engine does, which package diff holds to
// the native run. Each is run twice over: the second round must not see the first.
func TestBothEnginesAgree(t *testing.T) {
	chosen := map[string]map[string]int{report.EngineAuto: {}, report.EngineYaegi: {}}
	groups := map[string]int{}
	for _, pr := range append(append(recorded(t), corpus(t)...), plain(t)...) {
		t.Run(pr.name, func(t *testing.T) {
			group, _, _ := strings.Cut(pr.name, "/")
			groups[group]++
			p := check(t, pr.source)
			runs := false
			for setting, n := range chosen {
				if why := gate.WhyNotYaegi(p, setting); why != "" {
					t.Logf("%s: on ssa: %s", setting, why)
					continue
				}
				n[group]++
				runs = true
			}
			if runs {
				agree(t, p, pr)
			}
		})
	}
	for setting, n := range chosen {
		t.Logf("%s: on yaegi: %v of %v", setting, n, groups)
	}
	if auto, all := chosen[report.EngineAuto]["plain"], chosen[report.EngineYaegi]["plain"]; auto < 60 || all <= auto {
		t.Errorf("of the plain programs %d are on yaegi, %d with loops; want more", auto, all)
	}
}

func agree(t *testing.T, p *gate.Program, pr program) {
	t.Helper()
	if _, err := Compile(p); err != nil {
		t.Fatal(err)
	}
	if d := difference(t, p, pr.calls); d != "" {
		t.Error(d)
	}
}

// A run that panics is run again by the other engine: with Go's text, the line, the same clock, and nothing left for the next run. No
// goroutine outlives a run on either.
func TestPanicsAreRetold(t *testing.T) {
	p := check(t, "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tt := time.Now()\n\tyear := t.Year()\n\tdays := []int{year}\n\treturn days[len(call.Args)], nil\n}\n")
	if why := gate.WhyNotYaegi(p, report.EngineAuto); why != "" {
		t.Fatalf("not on yaegi: %s", why)
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 2 {
			for args, want := range map[string]string{
				"[]":  "",
				"[1]": "line 9: runtime error: runtime error: index out of range [1] with length 1",
			} {
				pr := program{}
				pr.add(t, args)
				got := run(t, c, pr.calls[0])
				if got.Panic != want || c.retold != (want != "") || c.Reads().Clock != 1 {
					t.Errorf("%s: %+v, retold %t, read the clock %d times; want panic %q", args, got, c.retold, c.Reads().Clock, want)
				}
			}
		}
	})
}

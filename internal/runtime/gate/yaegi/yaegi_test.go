package yaegi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/compiled"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A program is one of the corpus, the recorded ones or this package's own, with the calls to compare.
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
			p.calls = append(p.calls, recurgent.Input{Role: task.Role, Method: task.Method, Args: c.Args,
				Kwargs: c.Kwargs, Context: task.Context})
		}
		out = append(out, p)
	}
	return out
}

// nobody is a host without history that denies every request.
type nobody struct{}

func (nobody) Ask(op string, params, result any) error {
	if op != "history" {
		return &recurgent.Failure{Type: "denied", Message: "no " + op + " here"}
	}
	return json.Unmarshal([]byte("[]"), result)
}

// An end is the outcome of a call as a comparable text. Panics are all the same, because their text is the
// interpreter's own.
type end struct {
	Value, Encode, Error, Type, Context string
	Panic                               bool
}

// run runs a call on yaegi.
func run(t testing.TB, c *yaegi.Compiled, in recurgent.Input) (out end) {
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
	c.Begin(time.Unix(1790000000, 0), 1)
	value, err, panicked := c.Run(call)
	switch {
	case panicked != nil:
		return end{Panic: true}
	case err != nil:
		f := recurgent.AsFailure(err)
		return end{Error: f.Message, Type: f.Type}
	}
	raw, err := rt.Encode(value)
	if err != nil {
		return end{Encode: err.Error()}
	}
	after, err := json.Marshal(call.Context)
	if err != nil {
		t.Fatal(err)
	}
	return end{Value: string(raw), Context: string(after)}
}

// runCompiled runs a call of a program that the bench has built.
func runCompiled(t testing.TB, b *compiled.Bench, source string, in recurgent.Input) end {
	t.Helper()
	req := sandbox.Request{Role: in.Role, Method: in.Method, Args: in.Args, Now: time.Unix(1790000000, 0), Seed: 1,
		Timeout: time.Minute}
	context := map[string]json.RawMessage{}
	for k, v := range in.Context {
		context[k], _ = json.Marshal(v) // it was decoded from JSON
	}
	req.Kwargs, _ = json.Marshal(in.Kwargs) // decoded from JSON as well
	req.Context = maps.Clone(context)
	res := b.Run(t.Context(), source, req, compiled.Host{})
	if a := res.Authored; a != nil {
		return end{Error: a.Message, Type: a.Type}
	}
	if f := res.Failure; f != nil {
		if f.Detail == "panic" {
			return end{Panic: true}
		}
		reason, ok := strings.CutPrefix(f.Message, "the result has no JSON form: ")
		if !ok {
			t.Fatalf("%+v\n%s", f, source)
		}
		return end{Encode: reason}
	}
	res.Context.Apply(context)
	after, err := json.Marshal(context)
	if err != nil {
		t.Fatal(err)
	}
	return end{Value: string(res.Value), Context: string(after)}
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

// plain returns this package's own small programs.
func plain(t testing.TB) []program {
	t.Helper()
	var out []program
	for _, p := range plainPrograms() {
		source := "package tool\n\n" + p.helpers + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + p.body +
			"\n}\n"
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

// Every program that the gate lets yaegi run ends every call as the compiled program does. Each runs twice over,
// because the second round must not see the first.
func TestYaegiAgrees(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	chosen, groups := map[string]int{}, map[string]int{}
	var programs []program
	for _, pr := range append(append(recorded(t), corpus(t)...), plain(t)...) {
		group, _, _ := strings.Cut(pr.name, "/")
		groups[group]++
		p := check(t, pr.source)
		if why := gate.WhyNotYaegi(p); why != "" {
			t.Logf("%s: compiled: %s", pr.name, why)
			continue
		}
		chosen[group]++
		programs = append(programs, pr)
	}
	t.Logf("on yaegi: %v of %v", chosen, groups)
	if chosen["plain"] < 60 {
		t.Errorf("of the plain programs %d are on yaegi; want more", chosen["plain"])
	}
	for i, d := range differences(t, programs) {
		if d != "" {
			t.Errorf("%s: %s\n%s", programs[i].name, d, programs[i].source)
		}
	}
}

// A run that panics reports the panic, and leaves nothing for the next run.
func TestPanics(t *testing.T) {
	p := check(t, "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tt := time.Now()\n\tyear := t.Year()\n\tdays := []int{year}\n\treturn days[len(call.Args)], nil\n}\n")
	if why := gate.WhyNotYaegi(p); why != "" {
		t.Fatalf("not on yaegi: %s", why)
	}
	c, err := yaegi.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for args, panics := range map[string]bool{"[]": false, "[1]": true} {
			pr := program{}
			pr.add(t, args)
			if got := run(t, c, pr.calls[0]); got.Panic != panics || c.Reads().Clock != 1 {
				t.Errorf("%s: %+v, read the clock %d times; want a panic: %t", args, got, c.Reads().Clock, panics)
			}
		}
	}
	call, err := recurgent.New(recurgent.Input{Args: []json.RawMessage{[]byte("1")}}, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	c.Begin(time.Time{}, 1)
	if _, _, panicked := c.Run(call); panicked == nil || !strings.Contains(panicked.Message, "index out of range") ||
		panicked.Line != 0 {
		t.Errorf("got %+v", panicked)
	}
}

// A whole number beyond the precision of float64 is neither passed over nor changed, as in a compiled program.
func TestDigits(t *testing.T) {
	for body, want := range map[string]string{
		"\tn, ok := call.Args[0].(float64)\n\tif !ok {\n\t\treturn \"none\", nil\n\t}\n\treturn n, nil": "panic: a float64 does not hold",
		"\treturn fmt.Sprintf(\"%.0f|%v\", call.Args[0], 1), nil":                                       "panic: a float64 does not hold",
		"\treturn fmt.Sprintf(\"%v\", call.Args[0]), nil":                                               "7615917337495251231",
	} {
		p := check(t, "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n"+body+"\n}\n")
		if why := gate.WhyNotYaegi(p); why != "" {
			t.Errorf("%s: not on yaegi: %s", body, why)
			continue
		}
		c, err := yaegi.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		call, err := recurgent.New(recurgent.Input{Args: []json.RawMessage{[]byte("7615917337495251231")}}, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		c.Begin(time.Time{}, 1)
		v, err, panicked := c.Run(call)
		got := fmt.Sprint(v, err)
		if panicked != nil {
			got = "panic: " + panicked.Message
		}
		if want, panics := strings.CutPrefix(want, "panic: "); !strings.Contains(got, want) || panics != (panicked != nil) {
			t.Errorf("%s: %s", body, got)
		}
	}
}

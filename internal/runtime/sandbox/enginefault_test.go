package sandbox

//lint:file-ignore SA5002,SA5007,SA4010,SA5000 programs that misbehave on purpose

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// failingEngine is the default engine, but fails to compile a program that says so, and to encode a value that does.
type failingEngine struct{ worker.Engine }

func newFailingEngine(setting string) (worker.Engine, error) {
	e, err := worker.NewEngine(setting)
	return failingEngine{e}, err
}

func (e failingEngine) Load(source string) (*report.Facts, *report.Refusal, error) {
	switch {
	case strings.Contains(source, "// fails"):
		return nil, nil, &interp.Failure{Why: "planted"}
	case strings.Contains(source, "// panics"):
		var none map[string]int
		none["x"] = 1
	}
	return e.Engine.Load(source)
}

func (e failingEngine) Encode(v any) (json.RawMessage, error) {
	raw, err := e.Engine.Encode(v)
	if strings.Contains(string(raw), "plant") {
		return nil, &interp.Failure{Why: "planted"}
	}
	return raw, err
}

// A fault of the engine is a failure of ours, whatever the program does about it; the runner ends with it, and it is counted.
func TestEngineFailure(t *testing.T) {
	p := testPool(t, nil, hooks{args: []string{wire.RunnerArg, "failing"}})
	source := func(body string) string {
		return "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
	}
	for i, c := range []struct{ source, want string }{
		{source(`return "plant", nil`), "planted"},
		{source(`call.Context["k"] = "plant"; return 1, nil`), "planted"},
		{source(`defer func() { recover() }(); call.Tool("a").Call("b", "plant"); return 1, nil`), "planted"},
		{source(`func() { defer func() { recover() }(); call.Tool("a").Call("b", "plant") }(); return 1, nil`), "planted"},
		{source(`return "never compiled", nil // fails`), "planted"},
		{source(`return "never compiled", nil // panics`), "assignment to entry in nil map"},
	} {
		got := p.Run(t.Context(), request(c.source), &fakeHost{})
		f := got.Failure
		if said(got) != "failure runner_crash/engine" || !f.Ours || !strings.HasPrefix(f.Message, "the engine failed: ") || !strings.Contains(f.Message, c.want) {
			t.Errorf("%s: got %s: %+v", c.source, said(got), f)
		}
		if n := p.Stats().EngineFailures; n != int64(i+1) {
			t.Errorf("%d failures are counted after %d", n, i+1)
		}
		if n := p.Stats().Warm; n != 0 {
			t.Errorf("%s: a runner is kept warm", c.source)
		}
	}
	if _, f := p.Load(t.Context(), request(source("return 1, nil // fails")).Program, agent.Owner{Name: "local"}); f == nil || f.Detail != DetailEngine || !f.Ours {
		t.Errorf("Load: %+v", f)
	}
}

// wrongEngine answers its own test wrongly.
type wrongEngine struct{ worker.Engine }

func (wrongEngine) SelfTest() error { return errors.New("the program \"maps\" answers 2") }

// A pool whose canary's engine answers wrongly does not start, and says which program did.
func TestWrongEngineDoesNotStart(t *testing.T) {
	_, err := newPool(DefaultOptions(), hooks{args: []string{wire.RunnerArg, "wrong"}})
	if err == nil || !strings.Contains(err.Error(), "the engine does not work") || !strings.Contains(err.Error(), `"maps" answers 2`) {
		t.Errorf("got %v", err)
	}
}

// A program that exceeds a limit is at fault itself, and the model gets the message.
func TestLimitIsNoEngineFailure(t *testing.T) {
	p := testPool(t, nil, hooks{})
	_, f := p.Load(t.Context(), Program{Source: "package tool\n\nimport \"recurgent\"\n\nvar big [1 << 31]byte\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tbig[1] = 2\n\treturn big[3], nil\n}\n"}, agent.Owner{Name: "local"})
	if f == nil || f.Type != "invalid_code" || f.Ours || !strings.Contains(f.Message, "larger than 1 GiB") {
		t.Errorf("got %+v", f)
	}
	if n := p.Stats().EngineFailures; n != 0 {
		t.Errorf("%d failures are counted", n)
	}
}

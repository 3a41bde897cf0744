package sandbox

//lint:file-ignore SA5002,SA5007,SA4010,SA5000 programs that misbehave on purpose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
)

// The test binary is its own runner, with real processes and real confinement. The argument after "runner" selects the
// engine: the default one, or "native", whose programs are Go functions of this binary with nothing between them and
// the operating system.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == wire.RunnerArg {
		os.Exit(testRunner(os.Args[2:]))
	}
	code := m.Run()
	closeBuilding()
	if testPrograms.dir != "" {
		os.RemoveAll(testPrograms.dir)
	}
	os.Exit(code)
}

func testRunner(args []string) int {
	for _, arg := range args {
		if name, ok := strings.CutPrefix(arg, "mask="); ok {
			maskSyscall(name)
		}
		if dir, ok := strings.CutPrefix(arg, "dieonce="); ok && os.Mkdir(dir, 0o777) == nil {
			return 3
		}
	}
	if slices.Contains(args, wire.LaunchArg) {
		return worker.Main()
	}
	for _, arg := range args {
		switch {
		case strings.HasPrefix(arg, "script="):
			return runScript(strings.TrimPrefix(arg, "script="))
		case arg == "stuck":
			return worker.Serve(func(string) (worker.Engine, error) { return &stuckEngine{}, nil })
		case arg == "native":
			return worker.Serve(func(string) (worker.Engine, error) { return &nativeEngine{}, nil })
		}
	}
	return worker.Main()
}

// nativeEngine runs functions of this binary. A "source" is the name of one, or "name argument".
type nativeEngine struct {
	program func(*recurgent.Call) (any, error)
	counter struct{ clock, randomness int }
	now     time.Time
	seed    uint64
}

func (e *nativeEngine) Load(source string) (*report.Facts, *report.Refusal, error) {
	name, arg, _ := strings.Cut(source, " ")
	switch name {
	case "refuse":
		return nil, &report.Refusal{Type: arg, Message: "no", Hint: "do", Errors: []string{"program.go:1:1: no"}}, nil
	case "fault":
		return nil, nil, &rt.Failure{Why: "planted"}
	case "compilepanic":
		panic("compiler bug")
	case "compileloop":
		for {
		}
	}
	program, ok := nativePrograms(e)[name]
	if !ok {
		program, ok = outPrograms()[name]
	}
	if !ok {
		return nil, nil, errors.New("no program " + name)
	}
	e.program = program
	return &report.Facts{Imports: []string{name}}, nil, nil
}

func (e *nativeEngine) Run(call *recurgent.Call, now time.Time,
	seed uint64) (value any, err error, panicked *rt.Panic) {
	defer func() {
		if v := recover(); v != nil {
			value, err, panicked = nil, nil, &rt.Panic{Class: "string", Message: fmt.Sprint(v)}
		}
	}()
	e.now, e.seed, e.counter.clock, e.counter.randomness = now, seed, 0, 0
	value, err = e.program(call)
	return value, err, nil
}

func (e *nativeEngine) Reads() (int, int) { return e.counter.clock, e.counter.randomness }

func (e *nativeEngine) Encode(v any) (json.RawMessage, error) {
	if v == "plant" {
		return nil, &rt.Failure{Why: "planted"}
	}
	return json.Marshal(v)
}

// fakeHost answers host calls from a table.
type fakeHost struct {
	mu    sync.Mutex
	calls []string

	onCall func(ctx context.Context, role, method string, args []json.RawMessage,
		kwargs json.RawMessage) agent.Outcome
	history   string
	onHistory func(ctx context.Context)
	revision  int64
	files     map[string]string // files that can be opened
	made      []*fakeFile
}

func (h *fakeHost) Predict(_ context.Context, signature, inputs json.RawMessage) (json.RawMessage, *AuthoredError) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, "predict "+string(signature)+" "+string(inputs))
	if strings.Contains(string(inputs), "down") {
		return nil, &AuthoredError{Type: agent.ErrProvider, Message: "no answer"}
	}
	return json.RawMessage(`{"answer":"yes"}`), nil
}

func (h *fakeHost) Revision(context.Context, string) int64 { return h.revision }

func (h *fakeHost) note(s string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, s)
}

func (h *fakeHost) Call(ctx context.Context, role, method string, args []json.RawMessage,
	kwargs json.RawMessage) agent.Outcome {
	h.note("call " + role + "." + method)
	if h.onCall != nil {
		return h.onCall(ctx, role, method, args, kwargs)
	}
	return agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage(`"nested"`), ToolRole: role, MethodName: method}
}

func (h *fakeHost) Refuse(_ context.Context, role, method string, args []json.RawMessage, kwargs json.RawMessage,
	reason string) agent.Outcome {
	all, _ := json.Marshal(args) // they came as JSON
	h.note("refuse " + role + "." + method + string(all) + string(kwargs))
	return agent.Failed(agent.ErrNonSerializable, reason)
}

func (h *fakeHost) Delegate(ctx context.Context, role string, contract json.RawMessage) *AuthoredError {
	h.note("delegate " + role)
	if role == "bad" {
		return &AuthoredError{Type: "denied", Message: "not this one"}
	}
	return nil
}

func (h *fakeHost) Tools(context.Context) (json.RawMessage, error) {
	return json.RawMessage(`{"adder":{"role":"adder","purpose":"adds"}}`), nil
}

func (h *fakeHost) History(ctx context.Context, all, page bool, after, limit int) (json.RawMessage, error) {
	h.note(fmt.Sprintf("history all=%t page=%t after=%d limit=%d", all, page, after, limit))
	if h.onHistory != nil {
		h.onHistory(ctx)
	}
	if h.history != "" {
		return json.RawMessage(h.history), nil
	}
	return json.RawMessage(`[{"call_id":"c1","role":"r"}]`), nil
}

func (h *fakeHost) Content(ctx context.Context, ref string) (json.RawMessage, error) {
	if ref == "missing" {
		return nil, nil
	}
	return json.RawMessage(`"content of ` + ref + `"`), nil
}

// nativePool returns a pool whose programs are Go functions of this binary.
func nativePool(t testing.TB, change func(*Options), extra ...string) *Pool {
	t.Helper()
	return testPool(t, change, hooks{args: append([]string{wire.RunnerArg, "native"}, extra...)})
}

func testPool(t testing.TB, change func(*Options), h hooks) *Pool {
	t.Helper()
	o := DefaultOptions()
	o.Blank = 1
	if change != nil {
		change(&o)
	}
	p, err := newPool(o, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func request(source string, args ...any) Request {
	r := Request{Program: Program{Source: source, Checksum: "sha256:" + source}, Owner: agent.Owner{Name: "local"},
		Role: "tester", Method: "run", CallID: "call-1",
		// The timeout is longer than any terminating program takes on a busy machine.
		Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC), Seed: 7, Fetches: 200, Timeout: time.Minute}
	for _, a := range args {
		raw, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		r.Args = append(r.Args, raw)
	}
	return r
}

// said returns a Result in one line.
func said(r Result) string {
	switch {
	case r.Failure != nil:
		return "failure " + r.Failure.Type + "/" + r.Failure.Detail
	case r.Authored != nil && r.Authored.Retriable:
		return "retriable " + r.Authored.Type + ": " + r.Authored.Message
	case r.Authored != nil:
		return "authored " + r.Authored.Type + ": " + r.Authored.Message
	}
	return "value " + string(r.Value)
}

type json_ = json.RawMessage

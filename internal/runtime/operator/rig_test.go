package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/worker"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// The test binary serves as the runner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.RunnerArg {
		os.Exit(worker.Main())
	}
	code := m.Run()
	runtimetest.CloseCompiler()
	os.Exit(code)
}

// A rig is a runtime with its operator over a memory store, real runners and a scripted model.
type rig struct {
	*runtime.Runtime
	op    *operator.Operator
	model *runtimetest.Model

	memory store.Namespace
	o      operator.Options // options of op
}

func newRig(t *testing.T, programs map[string][]string) *rig {
	t.Helper()
	box := runtimetest.CompilingPool(t)
	g := &rig{model: &runtimetest.Model{Programs: programs}}
	o := env.DefaultOptions()
	o.Store, o.Sandbox, o.Provider = storetest.NewMemory(time.Now), box, g.model
	var err error
	if g.memory, err = o.Store.Namespace(agent.DefaultNamespace); err != nil {
		t.Fatal(err)
	}
	o.Metrics = telemetry.New(telemetry.NewRegistry(), telemetry.Build{})
	o.AllowImport = func(string) bool { return true }
	if g.Runtime, err = runtime.New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	g.o = operator.Options{Store: o.Store, Sandbox: box, Calls: g.Runtime, Secrets: fakeSecrets{}, Metrics: o.Metrics}
	if g.op, err = operator.New(g.o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Stop(context.Background())
		g.model.CheckHistoryGuidance(t)
	})
	return g
}

// run returns a program with that body of Run.
func run(body string) string {
	return "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
}

// conversation creates a session and returns a function that calls its methods.
func (g *rig) conversation(t *testing.T, role string) func(method string, args ...any) runtime.Reply {
	t.Helper()
	s, err := g.CreateSession(t.Context(), sessions.Request{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return func(method string, args ...any) runtime.Reply {
		t.Helper()
		raw := []json.RawMessage{}
		for _, a := range args {
			b, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			raw = append(raw, b)
		}
		res, err := g.Call(t.Context(), runtime.CallRequest{SessionID: s.ID, Method: method, Args: raw})
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", method, err))
		}
		var reply runtime.Reply
		if err := json.Unmarshal(res.Body, &reply); err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

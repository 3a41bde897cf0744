//go:build !scripted

package runtime

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// instant is a sandbox in which every program answers 5 at once, so that a benchmark measures a call without a runner.
type instant struct{ facts *report.Facts }

func (s instant) Load(context.Context, sandbox.Program, string) (*report.Facts, *sandbox.Failure) {
	return s.facts, nil
}

func (s instant) Run(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
	return sandbox.Result{Value: json.RawMessage("5"), Facts: s.facts}
}

func (instant) Status() sandbox.Status { return sandbox.Status{Level: sandbox.LevelProcess} }
func (instant) Stats() sandbox.Stats   { return sandbox.Stats{} }
func (instant) Close() error           { return nil }

// BenchmarkWarm is what a warm call costs beside its runner and its disk.
func BenchmarkWarm(b *testing.B) {
	o := DefaultOptions()
	o.Store, o.Sandbox = store.NewMemory(store.Options{}), instant{&report.Facts{UsesArgs: true}}
	o.Provider = &runtimetest.Model{Programs: map[string][]string{"calculator.add": {run(add)}}}
	o.Metrics = telemetry.New(telemetry.NewRegistry(), telemetry.Build{})
	o.AllowImport = func(string) bool { return true }
	r, err := New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Stop(context.Background()) }()
	s, err := r.CreateSession(b.Context(), SessionRequest{Role: "calculator"})
	if err != nil {
		b.Fatal(err)
	}
	q := CallRequest{SessionID: s.ID, Method: "add", Args: []json.RawMessage{json.RawMessage("2"), json.RawMessage("3")}, TraceID: ids.NewTrace()}
	warm := func() {
		if res, err := r.Call(b.Context(), q); err != nil || !res.OK {
			b.Fatalf("got %s, %v", res.Body, err)
		}
	}
	warm() // forges
	b.ReportAllocs()
	for b.Loop() {
		warm()
	}
}

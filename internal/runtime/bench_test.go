//go:build !scripted

package runtime

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// instant is a sandbox in which every program answers 5 at once, so that a benchmark measures a call without a runner.
type instant struct{ facts *report.Facts }

func (s instant) Load(context.Context, sandbox.Program, agent.Owner) (*report.Facts, *sandbox.Failure) {
	return s.facts, nil
}

func (s instant) Fix(_ context.Context, source string, _ report.Terms,
	_ agent.Owner) (sandbox.Program, *report.Facts, sandbox.Timing, *sandbox.Failure) {
	return sandbox.Program{Source: source, Checksum: agent.Checksum(source)}, s.facts, sandbox.Timing{}, nil
}

func (s instant) Run(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
	return sandbox.Result{Value: json.RawMessage("5"), Facts: s.facts}
}

func (instant) Status() sandbox.Status { return sandbox.Status{Level: sandbox.LevelProcess} }
func (instant) Stats() sandbox.Stats   { return sandbox.Stats{} }
func (instant) Close() error           { return nil }

// warmCall returns a function that makes a warm call, without a runner and a disk.
func warmCall(tb testing.TB, change ...func(*env.Options)) func() {
	tb.Helper()
	o := env.DefaultOptions()
	o.Store, o.Sandbox = storetest.NewMemory(time.Now), instant{&report.Facts{UsesArgs: true}}
	o.Provider = &runtimetest.Model{Programs: map[string][]string{"calculator.add": {run(add)}}}
	o.Metrics = telemetry.New(telemetry.NewRegistry(), telemetry.Build{})
	o.AllowImport = func(string) bool { return true }
	for _, c := range change {
		c(&o)
	}
	r, err := New(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = r.Stop(context.Background()) })
	s, err := r.CreateSession(tb.Context(), sessions.Request{Role: "calculator"})
	if err != nil {
		tb.Fatal(err)
	}
	q := CallRequest{SessionID: s.ID, Method: "add", Args: []json.RawMessage{json.RawMessage("2"),
		json.RawMessage("3")}, TraceID: ids.NewTrace()}
	warm := func() {
		if res, err := r.Call(tb.Context(), q); err != nil || !res.OK {
			tb.Fatalf("got %s, %v", res.Body, err)
		}
	}
	warm() // forges
	return warm
}

// BenchmarkWarm is what a warm call costs beside its runner and its disk.
func BenchmarkWarm(b *testing.B) {
	warm := warmCall(b)
	b.ReportAllocs()
	for b.Loop() {
		warm()
	}
}

// A warm call allocates little. The remaining allocations come from net/http, the runner's answer and the journal.
func TestWarmCallAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(200, warmCall(t)); n > 45 {
		t.Errorf("got %v allocations, want at most 45", n)
	}
}

// owner owns the one session that it makes.
type owner struct {
	store.Namespace
	epoch int64
}

func (o *owner) Enter(context.Context, string) (int64, error) { return o.epoch, nil }
func (o *owner) Leave(string)                                 {}
func (o *owner) Fenced(string)                                {}

func (o *owner) Create(ctx context.Context, s agent.Session, values map[string]json.RawMessage) (int64, error) {
	got, err := o.CreateOwned(ctx, s, values, "replica")
	o.epoch = got.Epoch
	return got.Epoch, err
}

// A warm call by its session's owner allocates no more than one in a daemon without owners. TestEnterAllocatesNothing
// checks that the cluster adds nothing. The allocations of following other replicas' calls are not counted here.
func TestOwnersWarmCallAllocatesNoMore(t *testing.T) {
	alone := testing.AllocsPerRun(200, warmCall(t))
	owned := testing.AllocsPerRun(200, warmCall(t, func(o *env.Options) {
		shared := storetest.NewMemory(time.Now)
		if err := shared.Join(t.Context(), store.Replica{ID: "replica", Address: "127.0.0.1:1"},
			time.Hour); err != nil {
			t.Fatal(err)
		}
		held, err := shared.Namespace(agent.DefaultNamespace)
		if err != nil {
			t.Fatal(err)
		}
		o.Store, o.Owners = shared, &owner{Namespace: held}
	}))
	if owned > alone {
		t.Errorf("%.0f allocations by the owner, %.0f without owners", owned, alone)
	}
}

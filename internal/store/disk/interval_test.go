package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// intervalOptions sets an interval of a second. No test takes that long, so only the script syncs calls.
func intervalOptions(t testing.TB, f *vfstest.FS, now func() time.Time) Options {
	o := simOptions(t, f, now)
	o.Interval = maxInterval
	return o
}

// lateCall commits a warm call, which adopts no program and registers no tool.
func (w *scripter) lateCall(session string) {
	w.calls++
	id := fmt.Sprintf("call_%04d", w.calls)
	w.add("late "+id, func(ctx context.Context, n store.Namespace) error {
		return n.CommitCall(ctx, lateCommit(session, id, w.now()))
	})
}

func lateCommit(session, id string, at time.Time) *store.CallCommit {
	c := storetest.NewCommit(session, id, at)
	c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"last": json.RawMessage(`"` + id + `"`)}}
	c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: at, Result: agent.ClassOK,
		SessionID: session}}
	c.Tools = []store.ToolChange{{Role: "calculator", At: at, Used: 1}}
	c.Pattern = &agent.PatternEvent{CallID: id, SessionID: session, Role: "calculator", MethodName: "add"}
	return c
}

// lateScript mixes calls that wait for their sync with changes that do not, and with what the flusher and the timer do.
func lateScript(now func() time.Time) []step {
	w := &scripter{in: agent.DefaultNamespace, now: now}
	calls := func(n int) {
		for i := range n {
			w.lateCall(fmt.Sprint("sess_", 1+i%2))
		}
	}
	settle := func() {
		w.steps = append(w.steps, step{name: "settle", files: func(s *Store) error { return s.sequencer.settle() }})
	}
	w.create("sess_1")
	w.create("sess_2")
	w.call("sess_1", "add", "gen-1")
	calls(4)
	settle()
	calls(3)
	w.call("sess_2", "add", "gen-2") // an adoption
	calls(3)
	w.sync()
	calls(2)
	w.add("policy", func(ctx context.Context, n store.Namespace) error {
		p := agent.DefaultPolicy()
		p.RepairEnabled = false
		return n.SetPolicy(ctx, p, store.AnyRevision, &agent.AuditEntry{ID: "audit_policy"})
	})
	calls(3)
	w.remove("sess_2")
	w.create("sess_2")
	calls(9) // more than a segment
	w.checkpoint()
	calls(4)
	return w.steps
}

func isLate(s *step) bool { return strings.Contains(s.name, " late ") }

// runLateScript applies the script to a store with an interval, as play.run does. Floor i is the oldest state that a
// power cut after step i may leave.
func runLateScript(t *testing.T, f *vfstest.FS) (states []string, floor []int) {
	t.Helper()
	states, floor = play{lateScript, both}.with(t, f, intervalOptions), []int{0}
	for i, step := range lateScript(func() time.Time { return simStart }) {
		if isLate(&step) {
			floor = append(floor, floor[i])
		} else {
			floor = append(floor, i+1)
		}
	}
	return states, floor
}

// TestIntervalPowerCut cuts the power after every operation. The store is in the state after some prefix of the steps,
// without at most the calls since the last sync. It continues from there without a gap, and lost calls never reappear.
func TestIntervalPowerCut(t *testing.T) {
	t.Parallel()
	f := vfstest.New()
	states, floor := runLateScript(t, f)
	ops := f.Ops()
	shorter := 0
	for way, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll, vfstest.AnyOf, vfstest.AnyOf, vfstest.AnyOf,
		vfstest.AnyOf} {
		began, acknowledged := 0, 0
		for n, op := range ops {
			if op.Kind == "mark" {
				if began = op.Mark/2 + 1; op.Mark%2 == 1 {
					acknowledged = began
				}
				continue
			}
			if leftOut(n, way) {
				continue
			}
			what := fmt.Sprintf("power cut after operation %d (%s), way %d", n+1, op, way)
			left := f.Crash(n+1, mode, rand.New(rand.NewPCG(uint64(n), uint64(way))))
			got, s, err := dumpOf(t, left)
			if err != nil {
				t.Fatalf("%s: %v\n%s", what, err, left.Text())
			}
			at := slices.Index(states[floor[acknowledged]:began+1], got)
			if at < 0 {
				t.Fatalf("%s: it is none of the states %d to %d: %s", what, floor[acknowledged], began,
					storetest.Difference(got, states[began]))
			}
			if floor[acknowledged]+at < acknowledged {
				shorter++
			}
			if q := s.Stats().Quarantined; q != 0 {
				t.Fatalf("%s: %d files were moved aside", what, q)
			}
			if (n+way)%7 == 0 && floor[acknowledged] > 3 {
				goesOn(t, left, what)
			}
		}
	}
	if shorter == 0 {
		t.Error("no power cut took a call: nothing waited for its sync")
	}
}

// goesOn makes a call after a power cut, cuts the power again, and checks that the call is still there.
func goesOn(t *testing.T, f *vfstest.FS, what string) {
	t.Helper()
	now := func() time.Time { return simStart.Add(time.Hour) }
	s, err := openStore(t, "sim", simOptions(t, f, now))
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	before := len(storetest.Records(t, s, "sess_1"))
	c := lateCommit("sess_1", "call_after", now())
	if err := s.CommitCall(context.Background(), c); err != nil || c.Record.Seq != before+1 {
		t.Fatalf("%s: the next call: seq %d, %v, want %d", what, c.Record.Seq, err, before+1)
	}
	want := both(t, s)
	s.kill()
	if got, _, err := dumpOf(t, f.Crash(len(f.Ops()), vfstest.AnyOf,
		rand.New(rand.NewPCG(3, 4)))); err != nil || got != want {
		t.Fatalf("%s, then a call and another power cut: %v, %s", what, err, storetest.Difference(got, want))
	}
}

// TestIntervalFaults makes each operation fail once, in half of the cases while calls wait for their sync. The store
// recovers by itself and then has on disk all that it acknowledged, including calls whose sync failed.
func TestIntervalFaults(t *testing.T) {
	t.Parallel()
	probe := vfstest.New()
	runLateScript(t, probe)
	ops := slices.DeleteFunc(probe.Ops(), func(op vfstest.Op) bool { return op.Kind == "mark" }) // marks cannot fail
	for n := 1; n <= len(ops); n++ {
		if leftOut(n, 0) {
			continue
		}
		f := vfstest.New()
		f.Fail = func(at int, _ vfstest.Op) (error, bool) {
			if at == n {
				return vfstest.ErrInjected, false
			}
			return nil, false
		}
		run := faultyRun{play{lateScript, both}, time.Duration(n%2) * maxInterval,
			[]vfstest.Mode{vfstest.LoseAll, vfstest.AnyOf}}
		run.check(t, f, fmt.Sprintf("operation %d (%s)", n, ops[n-1]))
	}
}

// A call is acknowledged before its sync, which follows after the interval. An adoption is synced before it is
// acknowledged, together with the calls before it.
func TestIntervalSyncsLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := vfstest.New()
		o := intervalOptions(t, f, time.Now)
		o.Interval = 10 * time.Millisecond
		s, err := openStore(t, "sim", o)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		if err := errors.Join(s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil),
			s.CommitCall(ctx, storetest.Forged(storetest.NewCommit("sess_1", "call_forged", simStart),
				"package tool"))); err != nil {
			t.Fatal(err)
		}
		before := s.Stats().Fsyncs
		for i := range 3 {
			if err := s.CommitCall(ctx, lateCommit("sess_1", fmt.Sprint("call_", i), simStart)); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Stats().Fsyncs - before; got != 0 {
			t.Errorf("three calls were acknowledged after %d syncs, want none", got)
		}
		time.Sleep(o.Interval)
		synctest.Wait()
		if got := s.Stats().Fsyncs - before; got != 1 {
			t.Errorf("after the interval: %d syncs, want 1", got)
		}
		c := storetest.Forged(storetest.NewCommit("sess_1", "call_again", simStart), "package tool // again")
		if err := s.CommitCall(ctx, c); err != nil {
			t.Fatal(err)
		}
		if got := s.Stats().Fsyncs - before; got != 2 {
			t.Errorf("after an adoption: %d syncs, want 2", got)
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}

package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

var simStart = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// script is a run of operations which touches everything that a store writes. Those without a twin are the flusher's.
type step struct {
	name  string
	do    func(store.Namespace) error
	files func(*Store) error
}

func script(now func() time.Time) []step {
	ctx := context.Background()
	var steps []step
	add := func(name string, do func(store.Namespace) error) { steps = append(steps, step{name: name, do: do}) }
	sync := func() { steps = append(steps, step{name: "sync", files: (*Store).Sync}) }
	checkpoint := func() { steps = append(steps, step{name: "checkpoint", files: (*Store).checkpoint}) }
	n := 0
	call := func(session, method string, change func(*store.CallCommit)) {
		n++
		id := fmt.Sprintf("call_%04d", n)
		add("call "+id, func(s store.Namespace) error {
			c := storetest.NewCommit(session, id, now())
			c.Record.MethodName, c.Log.Method = method, method
			c.Context = &agent.ContextChange{Set: map[string]json.RawMessage{"last": json.RawMessage(`"` + id + `"`)}}
			c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: method, At: now(), Result: agent.ClassOK, SessionID: session}}
			c.Tools = []store.ToolChange{{Role: "calculator", At: now(), Used: 1, Register: &agent.Contract{Purpose: "sums"}, IfAbsent: true}}
			c.Pattern = &agent.PatternEvent{CallID: id, SessionID: session, Role: "calculator", MethodName: method}
			c.Content = &store.Content{Ref: "content:" + id[len(id)-1:], Value: json.RawMessage(`"` + id + `"`)}
			if change != nil {
				change(c)
			}
			return s.CommitCall(ctx, c)
		})
	}
	forged := func(gen string) func(*store.CallCommit) {
		return func(c *store.CallCommit) {
			g := storetest.NewGeneration(gen, "package tool // "+gen+c.Record.CallID, now())
			c.Artifacts[0].Generation = g
			c.Artifacts[0].Fixture = &agent.Fixture{CallID: c.Record.CallID, SessionID: c.SessionID, Args: c.Record.Args, Value: c.Outcome.Value}
		}
	}
	create := func(id string) {
		add("create "+id, func(s store.Namespace) error {
			return s.CreateSession(ctx, agent.Session{ID: id, Role: "calculator", CreatedAt: now(), UpdatedAt: now()}, map[string]json.RawMessage{"first": json.RawMessage("1")})
		})
	}
	target := func(m string) []store.Target { return []store.Target{{Role: "calculator", Method: m}} }
	create("sess_1")
	call("sess_1", "add", forged("gen-1"))
	create("sess_2")
	call("sess_2", "add", nil)
	sync()
	call("sess_1", "sub", forged("gen-1"))
	call("sess_2", "sub", nil)
	add("policy", func(s store.Namespace) error {
		p := agent.DefaultPolicy()
		p.RepairEnabled = false
		return s.SetPolicy(ctx, p, &agent.AuditEntry{ID: "audit_1"})
	})
	checkpoint()
	call("sess_1", "add", nil)
	call("sess_2", "add", forged("gen-2"))
	add("context", func(s store.Namespace) error {
		_, err := s.ChangeContext(ctx, "sess_2", agent.ContextChange{Set: map[string]json.RawMessage{"patched": json.RawMessage("true")}, Delete: []string{"first"}})
		return err
	})
	sync()
	add("archive", func(s store.Namespace) error {
		return s.Archive(ctx, target("sub"), agent.AuditEntry{ID: "audit_2"})
	})
	call("sess_1", "sub", nil)
	sync()
	add("restore", func(s store.Namespace) error {
		return s.Restore(ctx, target("sub"), agent.AuditEntry{ID: "audit_3"})
	})
	sync()
	call("sess_1", "sub", nil)
	add("delete sess_2", func(s store.Namespace) error { return s.DeleteSession(ctx, "sess_2") })
	call("sess_1", "add", nil)
	add("archive tool", func(s store.Namespace) error {
		return s.Archive(ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_4"})
	})
	checkpoint()
	add("restore tool", func(s store.Namespace) error {
		return s.Restore(ctx, []store.Target{{Role: "calculator"}}, agent.AuditEntry{ID: "audit_5"})
	})
	call("sess_1", "add", nil)
	add("remove", func(s store.Namespace) error {
		return s.Remove(ctx, target("sub"), agent.AuditEntry{ID: "audit_6"})
	})
	call("sess_1", "sub", forged("gen-1"))
	sync()
	call("sess_1", "sub", nil)
	checkpoint()
	call("sess_1", "add", nil)
	// An older program comes back in the place of a newer one that is gone.
	add("archive add", func(s store.Namespace) error { return s.Archive(ctx, target("add"), agent.AuditEntry{ID: "audit_7"}) })
	checkpoint()
	call("sess_1", "add", forged("gen-1"))
	sync()
	add("remove add", func(s store.Namespace) error { return s.Remove(ctx, target("add"), agent.AuditEntry{ID: "audit_8"}) })
	add("restore add", func(s store.Namespace) error {
		return s.Restore(ctx, target("add"), agent.AuditEntry{ID: "audit_9"})
	})
	sync()
	call("sess_1", "sub", nil)
	return steps
}

func simOptions(t testing.TB, f *vfstest.FS, now func() time.Time) Options {
	o := testOptions(t)
	o.FS, o.Flush, o.Now = f, -1, now
	o.Segment, o.LogSegment = 1<<12, 4<<10 // segments turn within the script
	o.Sessions, o.Artifacts = 1, 1
	return o
}

// runScript does the script to the store, marking operation i before step i (2i) and after it (2i+1), and to a twin.
// It returns the twin's states: state i is that after i steps.
func runScript(t *testing.T, f *vfstest.FS) (states []string) {
	t.Helper()
	at := simStart
	now := func() time.Time { return at }
	s, err := openStore(t, "sim", simOptions(t, f, now))
	if err != nil {
		t.Fatal(err)
	}
	twin := store.NewMemory(store.Options{Now: now})
	states = append(states, storetest.Dump(t, twin, at))
	for i, step := range script(now) {
		at = at.Add(time.Second)
		f.Mark(2 * i)
		if step.files != nil {
			err = step.files(s.Store)
		} else if err = step.do(s.ns); err == nil {
			err = step.do(storetest.Default(t, twin))
		}
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		f.Mark(2*i + 1)
		states = append(states, storetest.Dump(t, twin, simStart))
	}
	if got, want := storetest.Dump(t, s, simStart), states[len(states)-1]; got != want {
		t.Fatalf("before any crash: %s", storetest.Difference(got, want))
	}
	s.kill()
	return states
}

// TestCrashPowerCut cuts the power after every operation on the file system, in several ways, and opens what is left: the
// store is as it was after the steps that were acknowledged, or the one under way as well. Nothing is quarantined.
func TestCrashPowerCut(t *testing.T) {
	f := vfstest.New()
	states := runScript(t, f)
	modes := []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll, vfstest.AnyOf, vfstest.AnyOf, vfstest.AnyOf}
	if testing.Short() {
		modes = modes[:3]
	}
	began, acked := 0, 0
	ops := f.Ops()
	for n := range len(ops) + 1 {
		if n > 0 && ops[n-1].Kind == "mark" {
			if m := ops[n-1].Mark; m%2 == 0 {
				began = m/2 + 1
			} else {
				acked = m/2 + 1
			}
			continue
		}
		for i, mode := range modes {
			left := f.Crash(n, mode, rand.New(rand.NewPCG(uint64(n), uint64(i))))
			got, s, err := dumpOf(t, left)
			if err != nil {
				t.Fatalf("power cut after operation %d (%+v), way %d: %v\n%s", n, opText(ops, n), i, err, left.Text())
			}
			if got != states[acked] && got != states[began] {
				t.Fatalf("power cut after operation %d (%s), way %d, between steps %d and %d: %s\n%s", n, opText(ops, n), i, acked, began, storetest.Difference(got, states[began]), left.Text())
			}
			if q := s.Stats().Quarantined; q != 0 {
				t.Fatalf("power cut after operation %d (%s), way %d: %d files were set aside", n, opText(ops, n), i, q)
			}
			if i == 2 { // and once more, in the middle of the recovery
				at := len(left.Ops()) * 2 / 3
				again := left.Crash(at, vfstest.AnyOf, rand.New(rand.NewPCG(uint64(n), 99)))
				if at < baseOps(left) {
					continue
				}
				got, _, err := dumpOf(t, again)
				if err != nil || got != states[acked] && got != states[began] {
					t.Fatalf("power cut after operation %d (%s) and again in the recovery: %v, %s", n, opText(ops, n), err, storetest.Difference(got, states[acked]))
				}
			}
		}
	}
}

// baseOps counts the operations that stand for what the power cut before left.
func baseOps(f *vfstest.FS) int {
	ops := f.Ops()
	for i, op := range ops {
		if op.Kind == "mark" && op.Mark == -1 {
			return i
		}
	}
	return len(ops)
}

func opText(ops []vfstest.Op, n int) string {
	if n == 0 {
		return "none"
	}
	return ops[n-1].String()
}

// dumpOf opens the store on a file system and renders it.
func dumpOf(t *testing.T, f *vfstest.FS) (string, *testStore, error) {
	t.Helper()
	f.Mark(-1)
	s, err := openStore(t, "sim", simOptions(t, f, func() time.Time { return simStart.Add(time.Hour) }))
	if err != nil {
		return "", nil, err
	}
	got := storetest.Dump(t, s, simStart)
	s.kill()
	return got, s, nil
}

// TestCrashFaults fails each operation on the file system once, or it and the next few, with an error or a short write.
// What returned an error changed nothing, the rest is there, also after a power cut at the end; the store mends itself.
func TestCrashFaults(t *testing.T) {
	probe := vfstest.New()
	runScript(t, probe)
	total := len(probe.Ops())
	for n := 1; n <= total; n++ {
		for way, row := range []int{1, 1, 4} {
			if testing.Short() && (n+way)%3 != 0 {
				continue
			}
			f := vfstest.New()
			f.Fail = func(at int, _ vfstest.Op) (error, bool) {
				if at >= n && at < n+row {
					return vfstest.ErrInjected, way == 1
				}
				return nil, false
			}
			faulty(t, f, fmt.Sprintf("operation %d, way %d", n, way))
		}
	}
}

func faulty(t *testing.T, f *vfstest.FS, what string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(what)
		}
	}()
	at := simStart
	now := func() time.Time { return at }
	var s *testStore
	for try := 0; ; try++ { // a daemon that cannot start is started again
		var err error
		if s, err = openStore(t, "sim", simOptions(t, f, now)); err == nil {
			break
		}
		if !errors.Is(err, vfstest.ErrInjected) || try > 10 {
			t.Fatalf("%s: open: %v", what, err)
		}
	}
	twin := store.NewMemory(store.Options{Now: now})
	for _, step := range script(now) {
		at = at.Add(time.Second)
		if step.files != nil {
			if err := step.files(s.Store); err != nil {
				s.health.fail(err)
			}
		} else if err := step.do(s.ns); err == nil {
			if err := step.do(storetest.Default(t, twin)); err != nil {
				t.Fatalf("%s: %s: the store did what its twin refuses: %v", what, step.name, err)
			}
		} else if !errors.Is(err, vfstest.ErrInjected) && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrExists) {
			t.Fatalf("%s: %s: %v", what, step.name, err)
		}
		for range 10 {
			if s.Ready() == nil {
				break
			}
			s.flusher.round(false)
		}
	}
	want := storetest.Dump(t, twin, simStart)
	if got := storetest.Dump(t, s, simStart); got != want {
		t.Fatalf("%s: %s", what, storetest.Difference(got, want))
	}
	s.kill()
	for i, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.AnyOf, vfstest.KeepAll} {
		got, _, err := dumpOf(t, f.Crash(len(f.Ops()), mode, rand.New(rand.NewPCG(7, uint64(i)))))
		if err != nil || got != want {
			t.Fatalf("%s, then a power cut, way %d: %v, %s", what, i, err, storetest.Difference(got, want))
		}
	}
}

// TestCrashPowerCutConcurrent cuts the power at random moments of a run of many writers, whose commits share batches: what
// was acknowledged is there, histories are gapless, counters are the sum of what is there.
func TestCrashPowerCutConcurrent(t *testing.T) {
	f := vfstest.New()
	o := simOptions(t, f, time.Now)
	s, err := openStore(t, "sim", o)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for i := range 4 {
		if err := s.CreateSession(ctx, agent.Session{ID: fmt.Sprint("sess_", i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CommitCall(ctx, storetest.Forged(storetest.NewCommit("sess_0", "call_first", simStart), "package tool")); err != nil {
		t.Fatal(err)
	}
	start := len(f.Ops())
	const writers, each = 8, 12
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				c := storetest.NewCommit(fmt.Sprint("sess_", (w+n)%4), fmt.Sprintf("call_%02d_%02d", w, n), simStart)
				c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: simStart, Result: agent.ClassOK}}
				if err := s.CommitCall(ctx, c); err != nil {
					t.Error(err)
				}
				f.Mark(w*each + n)
				if w == 0 && n%4 == 3 {
					if err := s.checkpoint(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s.kill()
	ops := f.Ops()
	for n := start; n <= len(ops); n += 3 {
		left := f.Crash(n, vfstest.AnyOf, rand.New(rand.NewPCG(uint64(n), 5)))
		s, err := openStore(t, "sim", simOptions(t, left, time.Now))
		if err != nil {
			t.Fatalf("after operation %d: %v", n, err)
		}
		there, total := map[string]bool{}, int64(0)
		for i := range 4 {
			for _, r := range storetest.Records(t, s, fmt.Sprint("sess_", i)) {
				if there[r.CallID] {
					t.Fatalf("after operation %d: %s is there twice", n, r.CallID)
				}
				there[r.CallID] = true
				total++
			}
		}
		for _, op := range ops[start:n] {
			if id := fmt.Sprintf("call_%02d_%02d", op.Mark/each, op.Mark%each); op.Kind == "mark" && !there[id] {
				t.Fatalf("after operation %d: %s was acknowledged and is lost", n, id)
			}
		}
		a, err := s.Artifact(ctx, "calculator", "add")
		if err != nil || a.SuccessCount != total {
			t.Fatalf("after operation %d: %d successes, %d records: %v", n, a.SuccessCount, total, err)
		}
		s.kill()
	}
}

package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

var simStart = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func simOptions(t testing.TB, f *vfstest.FS, now func() time.Time) Options {
	o := testOptions(t)
	o.FS, o.Flush, o.Now = f, -1, now
	o.order = nil                          // the check takes most of the time, and other tests do it
	o.Segment, o.LogSegment = 1<<12, 4<<10 // rotates segments within the script
	o.Sessions, o.Artifacts = 1, 1
	return o
}

// both renders the namespaces that scriptOfTwo uses, for comparison.
func both(t testing.TB, s store.Store) string {
	t.Helper()
	return storetest.Dump(t, s, simStart, agent.DefaultNamespace, other)
}

// A play is a script and a function that renders a store for comparison.
type play struct {
	script func(now func() time.Time) []step
	dump   func(t testing.TB, s store.Store) string
}

// run applies the script to the store, with mark 2i before step i and 2i+1 after it, and to a twin in memory. It
// returns the twin's states; state i is the one after i steps.
func (p play) run(t *testing.T, f *vfstest.FS) (states []string) {
	t.Helper()
	return p.with(t, f, simOptions)
}

// with is run with other options.
func (p play) with(t *testing.T, f *vfstest.FS, options func(testing.TB, *vfstest.FS,
	func() time.Time) Options) (states []string) {
	t.Helper()
	at := simStart
	now := func() time.Time { return at }
	s, err := openStore(t, "sim", options(t, f, now))
	if err != nil {
		t.Fatal(err)
	}
	twin := storetest.NewMemory(now)
	states = append(states, p.dump(t, twin))
	for i, step := range p.script(now) {
		at = at.Add(time.Second)
		f.Mark(2 * i)
		if step.files != nil {
			err = step.files(s.Store)
		} else if err = step.to(t, s); err == nil {
			err = step.to(t, twin)
		}
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		f.Mark(2*i + 1)
		states = append(states, p.dump(t, twin))
	}
	if got, want := p.dump(t, s), states[len(states)-1]; got != want {
		t.Fatalf("before any crash: %s", storetest.Difference(got, want))
	}
	s.kill()
	return states
}

// TestCrashPowerCut cuts the power after every operation on the file system, in several modes, and opens what is left.
// The store is in the state after the acknowledged steps, or after the step in progress as well. Nothing is moved
// aside.
func TestCrashPowerCut(t *testing.T) {
	t.Parallel()
	play{scriptOfTwo, both}.cuts(t)
}

// leftOut reports whether a short run skips the combination of an operation and a mode. It runs one in 40; the modes
// together cover all operations.
func leftOut(operation, way int) bool { return testing.Short() && (operation+7*way)%40 != 0 }

// cuts is TestCrashPowerCut for one script.
func (p play) cuts(t *testing.T) {
	f := vfstest.New()
	c := cutTest{play: p, f: f, states: p.run(t, f)}
	c.ops = f.Ops()
	for way, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.KeepAll, vfstest.AnyOf, vfstest.AnyOf,
		vfstest.AnyOf} {
		t.Run(fmt.Sprint("way", way), func(t *testing.T) {
			t.Parallel()
			began, acknowledged := 0, 0
			for n := range len(c.ops) + 1 {
				if n > 0 && c.ops[n-1].Kind == "mark" {
					if m := c.ops[n-1].Mark; m%2 == 0 {
						began = m/2 + 1
					} else {
						acknowledged = m/2 + 1
					}
					continue
				}
				if leftOut(n, way) {
					continue
				}
				c.cut(t, cut{n, way, mode, c.states[acknowledged], c.states[began]})
			}
		})
	}
}

// A power cut may leave a part of the directory of a deleted session. The sums of its owner do not depend on which
// part.
func TestCrashLeavesPartOfASession(t *testing.T) {
	t.Parallel()
	f := vfstest.New()
	p := play{scriptOfTwo, both}
	states := p.run(t, f)
	acknowledged, cuts := 0, 0
	for n, op := range f.Ops() {
		if op.Kind == "mark" && op.Mark%2 == 1 {
			acknowledged = op.Mark/2 + 1
		}
		if op.Kind != "removeall" || !strings.Contains(op.Name, "sessions/") {
			continue
		}
		for _, file := range []string{"session.json", "history.jsonl"} {
			left := f.Crash(n, vfstest.KeepAll, rand.New(rand.NewPCG(1, 1)))
			if err := left.Remove(op.Name + "/" + file); err != nil {
				continue // it was not written yet
			}
			cuts++
			got, _, err := p.open(t, left)
			if was, now := states[acknowledged], states[acknowledged+1]; err != nil || got != was && got != now {
				t.Errorf("%s without its %s: %v, %s", op.Name, file, err, storetest.Difference(got, now))
			}
		}
	}
	if cuts < 4 {
		t.Errorf("%d power cuts", cuts)
	}
}

type cutTest struct {
	play
	f      *vfstest.FS
	ops    []vfstest.Op
	states []string
}

// cut is a power cut after the first n operations, and the two states in one of which the store must be.
type cut struct {
	n, way     int
	mode       vfstest.Mode
	acked, now string
}

func (c *cutTest) cut(t *testing.T, x cut) {
	t.Helper()
	what := fmt.Sprintf("power cut after operation %d (%s), way %d", x.n, opText(c.ops, x.n), x.way)
	left := c.f.Crash(x.n, x.mode, rand.New(rand.NewPCG(uint64(x.n), uint64(x.way))))
	got, s, err := c.open(t, left)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, left.Text())
	}
	if got != x.acked && got != x.now {
		t.Fatalf("%s: %s\n%s", what, storetest.Difference(got, x.now), left.Text())
	}
	if q := s.Stats().Quarantined; q != 0 {
		t.Fatalf("%s: %d files were moved aside", what, q)
	}
	if x.way != 2 {
		return
	}
	// Cut the power again, in the middle of the recovery.
	at := len(left.Ops()) * 2 / 3
	if at < baseOps(left) {
		return
	}
	again := left.Crash(at, vfstest.AnyOf, rand.New(rand.NewPCG(uint64(x.n), 99)))
	if got, _, err := c.open(t, again); err != nil || got != x.acked && got != x.now {
		t.Fatalf("%s, and again in the recovery: %v, %s", what, err, storetest.Difference(got, x.acked))
	}
}

// baseOps counts the operations that stand for what the previous power cut left.
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

// open opens the store on a file system, renders it and kills it.
func (p play) open(t *testing.T, f *vfstest.FS) (string, *testStore, error) {
	t.Helper()
	f.Mark(-1)
	s, err := openStore(t, "sim", simOptions(t, f, func() time.Time { return simStart.Add(time.Hour) }))
	if err != nil {
		return "", nil, err
	}
	got := p.dump(t, s)
	s.kill()
	return got, s, nil
}

// TestCrashFaults makes each operation on the file system fail once, alone or with the next few, with an error or a
// short write. Steps that returned an error changed nothing; all others are kept, even after a power cut at the end.
// The store recovers by itself.
func TestCrashFaults(t *testing.T) {
	t.Parallel()
	probe := vfstest.New()
	p := play{scriptOfTwo, both}
	p.run(t, probe)
	p.faults(t, probe)
}

// faults is TestCrashFaults for one script. probe is a file system on which it ran without faults.
func (p play) faults(t *testing.T, probe *vfstest.FS) {
	ops := slices.DeleteFunc(probe.Ops(), func(op vfstest.Op) bool { return op.Kind == "mark" }) // marks cannot fail
	for way, row := range []int{1, 1, 4} {
		t.Run(fmt.Sprint("way", way), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= len(ops); n++ {
				if leftOut(n, way) || way == 1 && ops[n-1].Kind != "write" {
					continue // only a write can be short
				}
				f := vfstest.New()
				f.Fail = func(at int, _ vfstest.Op) (error, bool) {
					if at >= n && at < n+row {
						return vfstest.ErrInjected, way == 1
					}
					return nil, false
				}
				faultyRun{p, 0, []vfstest.Mode{vfstest.LoseAll, vfstest.AnyOf, vfstest.KeepAll}}.check(t, f,
					fmt.Sprintf("operation %d, way %d", n, way))
			}
		})
	}
}

// A faultyRun is a script that is applied to a store whose file operations fail.
type faultyRun struct {
	play
	interval time.Duration  // of the store's options
	cuts     []vfstest.Mode // modes of the power cut at the end
}

// check applies the script to the store, and each successful step to a twin in memory. Steps that returned an error
// changed nothing; all others are kept, even after a power cut. The store recovers by itself.
func (r faultyRun) check(t *testing.T, f *vfstest.FS, what string) {
	t.Helper()
	at := simStart
	now := func() time.Time { return at }
	o := simOptions(t, f, now)
	o.Interval = r.interval
	s := openFaulty(t, o, what)
	twin := storetest.NewMemory(now)
	for _, step := range r.script(now) {
		at = at.Add(time.Second)
		unsure := false
		if step.files != nil {
			if err := step.files(s.Store); err != nil {
				s.health.fail(err)
			}
		} else if err := step.to(t, s); err == nil {
			if err := step.to(t, twin); err != nil {
				t.Fatalf("%s: %s: the store did what its twin refuses: %v", what, step.name, err)
			}
		} else if !errors.Is(err, vfstest.ErrInjected) && !errors.Is(err, store.ErrNotFound) &&
			!errors.Is(err, store.ErrExists) {
			t.Fatalf("%s: %s: %v", what, step.name, err)
		} else {
			unsure = step.late && errors.Is(err, store.ErrReadOnly)
		}
		for range 10 {
			if s.Ready() == nil {
				break
			}
			s.flusher.round(false)
		}
		if unsure && r.dump(t, s) != r.dump(t, twin) {
			if err := step.to(t, twin); err != nil || r.dump(t, s) != r.dump(t, twin) {
				t.Fatalf("%s: %s: recovery kept a part of it, or what its twin refuses: %v", what, step.name, err)
			}
		}
	}
	if r.interval > 0 {
		if err := s.sequencer.settle(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	want := r.dump(t, twin)
	if got := r.dump(t, s); got != want {
		t.Fatalf("%s: %s", what, storetest.Difference(got, want))
	}
	s.kill()
	for i, mode := range r.cuts {
		got, _, err := r.open(t, f.Crash(len(f.Ops()), mode, rand.New(rand.NewPCG(7, uint64(i)))))
		if err != nil || got != want {
			t.Fatalf("%s, then a power cut, way %d: %v, %s", what, i, err, storetest.Difference(got, want))
		}
	}
}

// openFaulty opens a store and tries again after an error, as a restarted daemon does.
func openFaulty(t *testing.T, o Options, what string) *testStore {
	t.Helper()
	for try := 0; ; try++ {
		s, err := openStore(t, "sim", o)
		if err == nil {
			return s
		}
		if !errors.Is(err, vfstest.ErrInjected) || try > 10 {
			t.Fatalf("%s: open: %v", what, err)
		}
	}
}

// TestCrashPowerCutConcurrent cuts the power at random moments while many writers share batches. Acknowledged commits
// are kept, histories have no gaps, and counters equal the sum of the calls.
func TestCrashPowerCutConcurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the order of goroutines")
	}
	t.Parallel()
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
	if err := s.CommitCall(ctx, storetest.Forged(storetest.NewCommit("sess_0", "call_first", simStart),
		"package tool")); err != nil {
		t.Fatal(err)
	}
	start := len(f.Ops())
	const writers, each = 8, 12
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := range each {
				c := storetest.NewCommit(fmt.Sprint("sess_", (w+n)%4), fmt.Sprintf("call_%02d_%02d", w, n), simStart)
				c.Artifacts = []agent.ArtifactChange{{Role: "calculator", MethodName: "add", At: simStart,
					Result: agent.ClassOK}}
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
					t.Fatalf("after operation %d: %s appears twice", n, r.CallID)
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

// dumpOf opens the store on a file system and renders both namespaces.
func dumpOf(t *testing.T, f *vfstest.FS) (string, *testStore, error) {
	t.Helper()
	return play{dump: both}.open(t, f)
}

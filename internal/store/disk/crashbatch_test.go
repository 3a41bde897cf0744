package disk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// manySessions creates enough sessions for a checkpoint to write them as a batch, and a call in every third one.
func manySessions(t testing.TB, s *testStore) {
	t.Helper()
	ctx := context.Background()
	for i := range leastBatch + 8 {
		id := fmt.Sprintf("sess_%03d", i)
		if err := s.CreateSession(ctx, agent.Session{ID: id, CreatedAt: simStart},
			map[string]json.RawMessage{"n": json.RawMessage(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			if err := s.CommitCall(ctx, storetest.NewCommit(id, "call_"+id, simStart)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCrashInBatch cuts the power after each operation of a checkpoint that writes many sessions. Nothing is lost and
// nothing is moved aside.
func TestCrashInBatch(t *testing.T) {
	t.Parallel()
	f := vfstest.New()
	s, err := openStore(t, "sim", simOptions(t, f, func() time.Time { return simStart }))
	if err != nil {
		t.Fatal(err)
	}
	manySessions(t, s)
	want, start := both(t, s), len(f.Ops())
	for range 2 { // the second one finds nothing to do
		if err := s.checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	s.kill()
	batched := 0
	for _, op := range f.Ops()[start:] {
		if op.Kind == "syncall" {
			batched++
		}
	}
	if batched != 3 {
		t.Errorf("%d syncs of everything, want 3", batched)
	}
	for n := start; n <= len(f.Ops()); n++ {
		for way, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.AnyOf} {
			left := f.Crash(n, mode, rand.New(rand.NewPCG(uint64(n), 3)))
			got, s, err := dumpOf(t, left)
			if err != nil || got != want {
				t.Fatalf("power cut after operation %d (%s), way %d: %v, %s", n, opText(f.Ops(), n), way, err,
					storetest.Difference(got, want))
			}
			if q := s.Stats().Quarantined; q != 0 {
				t.Fatalf("power cut after operation %d: %d files were moved aside", n, q)
			}
		}
	}
}

// TestFaultInBatch makes each operation of such a checkpoint fail. The next checkpoint writes what this one did not.
func TestFaultInBatch(t *testing.T) {
	t.Parallel()
	fault := 0
	for {
		f := vfstest.New()
		s, err := openStore(t, "sim", simOptions(t, f, func() time.Time { return simStart }))
		if err != nil {
			t.Fatal(err)
		}
		manySessions(t, s)
		want, failed := both(t, s), false
		f.Fail = func(n int, op vfstest.Op) (error, bool) {
			if n == fault+1 {
				failed = true
				return vfstest.ErrInjected, n%2 == 0
			}
			return nil, false
		}
		err = s.checkpoint()
		if !failed {
			s.kill()
			break // there are no more operations
		}
		if !errors.Is(err, vfstest.ErrInjected) && err != nil {
			t.Fatalf("operation %d failed: %v", fault+1, err)
		}
		if err := s.checkpoint(); err != nil {
			t.Fatalf("after operation %d failed: %v", fault+1, err)
		}
		s.kill()
		if got, _, err := dumpOf(t, f.Crash(len(f.Ops()), vfstest.LoseAll, nil)); err != nil || got != want {
			t.Fatalf("after operation %d failed: %v, %s", fault+1, err, storetest.Difference(got, want))
		}
		fault += 7 // a prime, so each kind of operation fails for different files
	}
	if fault == 0 {
		t.Error("nothing failed")
	}
}

// noSyncAll is a file system without SyncAll.
type noSyncAll struct{ *vfstest.FS }

func (noSyncAll) SyncAll() error { return errors.ErrUnsupported }

// Without SyncAll, sessions are written one by one.
func TestBatchWithoutSyncAll(t *testing.T) {
	t.Parallel()
	f := vfstest.New()
	o := simOptions(t, f, func() time.Time { return simStart })
	o.FS = vfs.FS(noSyncAll{f})
	s, err := openStore(t, "sim", o)
	if err != nil {
		t.Fatal(err)
	}
	manySessions(t, s)
	want := both(t, s)
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	s.kill()
	if got, _, err := dumpOf(t, f.Crash(len(f.Ops()), vfstest.LoseAll, nil)); err != nil || got != want {
		t.Fatalf("%v, %s", err, storetest.Difference(got, want))
	}
}

// TestCrashBeforeTheFilesFollow opens a killed store, commits to it before its files include the journal's entries, and
// cuts the power at every moment. All commits before the kill and all acknowledged ones after it survive.
func TestCrashBeforeTheFilesFollow(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return simStart }
	f := vfstest.New()
	s, err := openStore(t, "sim", simOptions(t, f, now))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	manySessions(t, s)
	s.kill()
	left := f.Crash(len(f.Ops()), vfstest.LoseAll, nil)
	s, err = openStore(t, "sim", simOptions(t, left, now))
	if err != nil {
		t.Fatal(err)
	}
	if !s.flusher.behind || len(s.all()[0].sessions.changed) == 0 {
		t.Fatal("the files follow before the store serves")
	}
	states := []string{both(t, s)}
	start := len(left.Ops())
	steps := []func() error{
		func() error {
			return s.CreateSession(t.Context(), agent.Session{ID: "sess_new", CreatedAt: simStart}, nil)
		},
		func() error { return s.CommitCall(t.Context(), storetest.NewCommit("sess_000", "call_new", simStart)) },
		s.checkpoint,
	}
	for i, step := range steps {
		left.Mark(i)
		if err := step(); err != nil {
			t.Fatal(err)
		}
		states = append(states, both(t, s))
	}
	s.kill()
	began, ops := 0, left.Ops()
	for n := start; n <= len(ops); n++ {
		if op := ops[n-1]; op.Kind == "mark" {
			began = op.Mark + 1
		}
		got, s, err := dumpOf(t, left.Crash(n, vfstest.AnyOf, rand.New(rand.NewPCG(uint64(n), 8))))
		if err != nil || got != states[max(began-1, 0)] && got != states[began] {
			t.Fatalf("power cut after operation %d (%s): %v, %s", n, opText(ops, n), err,
				storetest.Difference(got, states[began]))
		}
		if q := s.Stats().Quarantined; q != 0 {
			t.Fatalf("power cut after operation %d: %d files were moved aside", n, q)
		}
	}
}

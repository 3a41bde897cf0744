package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs/vfstest"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// pipelined opens a store with sessions and a program. Nothing but its calls causes syncs.
func pipelined(t *testing.T, f vfs.FS, sessions int) *testStore {
	t.Helper()
	o := simOptions(t, nil, time.Now)
	o.FS = f
	if _, gated := f.(*gatedFS); gated {
		o.Segment = 1 << 20 // starting a new segment would wait for the gate
	}
	s, err := openStore(t, "sim", o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sessions {
		if err := s.CreateSession(t.Context(), agent.Session{ID: fmt.Sprint("sess_", i), Role: "calculator"},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CommitCall(t.Context(), storetest.Forged(storetest.NewCommit("sess_0", "call_first", simStart),
		"package tool")); err != nil {
		t.Fatal(err)
	}
	return s
}

// begin commits a warm call and returns when it has its place in the order. done receives the result of CommitCall.
func begin(s *testStore, session, id string) (done <-chan error) {
	ordered, result := make(chan struct{}), make(chan error, 1)
	c := lateCommit(session, id, simStart)
	c.Ordered = func() { close(ordered) }
	go func() { result <- s.CommitCall(context.Background(), c) }()
	select {
	case <-ordered:
		return result
	case err := <-result:
		result <- err
		return result
	}
}

// TestPipelinedPowerCut cuts the power after every operation while calls of a session follow each other before they are
// durable. Each session has a prefix of its calls without gaps and with all acknowledged ones, its context is that
// after its last call, and counters agree.
func TestPipelinedPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the order of goroutines")
	}
	t.Parallel()
	const sessions, each = 3, 24
	f := vfstest.New()
	s := pipelined(t, f, sessions)
	start := len(f.Ops())
	var all sync.WaitGroup
	for i := range sessions {
		all.Go(func() {
			for n := range each {
				done := begin(s, fmt.Sprint("sess_", i), callName(i, n))
				all.Go(func() {
					if err := <-done; err != nil {
						t.Error(err)
					}
					f.Mark(i*each + n)
				})
				if i == 0 && n%8 == 7 {
					if err := s.checkpoint(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	s.kill()
	ops := f.Ops()
	for n := start; n <= len(ops); n++ {
		if n > 0 && ops[n-1].Kind == "mark" {
			continue
		}
		for way, mode := range []vfstest.Mode{vfstest.LoseAll, vfstest.AnyOf, vfstest.AnyOf} {
			what := fmt.Sprintf("power cut after operation %d (%s), way %d", n, opText(ops, n), way)
			s, err := openStore(t, "sim", simOptions(t, f.Crash(n, mode, rand.New(rand.NewPCG(uint64(n), uint64(way)))),
				time.Now))
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			acknowledged := map[string]bool{}
			for _, op := range ops[start:n] {
				if op.Kind == "mark" {
					acknowledged[callName(op.Mark/each, op.Mark%each)] = true
				}
			}
			checkPipelined(t, s, sessions, acknowledged, what)
			s.kill()
		}
	}
}

func callName(session, n int) string { return fmt.Sprintf("call_%02d_%02d", session, n) }

// checkPipelined compares what a power cut left of the sessions' calls with what was acknowledged, and checks that it
// is consistent.
func checkPipelined(t *testing.T, s *testStore, sessions int, acknowledged map[string]bool, what string) {
	t.Helper()
	total := int64(0)
	for i := range sessions {
		id := fmt.Sprint("sess_", i)
		records := storetest.Records(t, s, id)
		if i == 0 {
			records = records[1:] // the call that brought the program
		}
		last := ""
		for n, r := range records {
			if r.CallID != callName(i, n) {
				t.Fatalf("%s: record %d of %s is %s", what, n, id, r.CallID)
			}
			if _, err := s.Call(t.Context(), r.CallID); err != nil {
				t.Fatalf("%s: %s has a record and no log entry: %v", what, r.CallID, err)
			}
			delete(acknowledged, r.CallID)
			last = `"` + r.CallID + `"`
			total++
		}
		values, err := s.Context(t.Context(), id)
		if err != nil || string(values["last"]) != last {
			t.Fatalf("%s: the context of %s is of %s, its last record is %s: %v", what, id, values["last"], last, err)
		}
	}
	if len(acknowledged) > 0 {
		t.Fatalf("%s: acknowledged and lost: %v", what, acknowledged)
	}
	a, err := s.Artifact(t.Context(), "calculator", "add")
	if err != nil || a.SuccessCount != total+1 {
		t.Fatalf("%s: %d successes, %d records: %v", what, a.SuccessCount, total+1, err)
	}
	if q := s.Stats().Quarantined; q != 0 {
		t.Fatalf("%s: %d files were moved aside", what, q)
	}
}

// The files contain nothing of a call that is committed while they are written and is not durable. Otherwise a power
// cut could leave a session with a call that the rest of the store does not know.
func TestFilesWaitForTheJournal(t *testing.T) {
	t.Parallel()
	f := newGated()
	s := pipelined(t, f, 1)
	if err := <-begin(s, "sess_0", callName(0, 0)); err != nil {
		t.Fatal(err)
	}
	start := len(f.Ops())
	open, late := func() {}, (<-chan error)(nil)
	f.renamed = func(to string) {
		switch to {
		case "tools/calculator/add.json": // the session is written next
			open = f.close()
			late = begin(s, "sess_0", callName(0, 1))
		case checkpointFile:
			open() // otherwise the journal could not be cut
		}
	}
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	if late == nil {
		t.Fatal("no call came while the files were being written")
	}
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	f.renamed = nil
	if err := s.checkpoint(); err != nil {
		t.Fatal(err)
	}
	s.kill()
	for n := start; n <= len(f.Ops()); n++ {
		left, err := openStore(t, "sim", simOptions(t, f.Crash(n, vfstest.LoseAll, nil), time.Now))
		if err != nil {
			t.Fatal(err)
		}
		acknowledged := map[string]bool{callName(0, 0): true}
		if n == len(f.Ops()) {
			acknowledged[callName(0, 1)] = true // the second checkpoint includes it
		}
		checkPipelined(t, left, 1, acknowledged, fmt.Sprintf("power cut after operation %d (%s)", n,
			opText(f.Ops(), n)))
		left.kill()
	}
}

// gatedFS blocks syncs of the journal while it is closed.
type gatedFS struct {
	*vfstest.FS
	gate    *atomic.Pointer[chan struct{}]
	renamed func(to string) // called after a file got its name
}

func newGated() *gatedFS { return &gatedFS{FS: vfstest.New(), gate: &atomic.Pointer[chan struct{}]{}} }

func (f *gatedFS) Rename(from, to string) error {
	err := f.FS.Rename(from, to)
	if f.renamed != nil {
		f.renamed(to)
	}
	return err
}

func (f *gatedFS) close() (open func()) {
	c := make(chan struct{})
	f.gate.Store(&c)
	return func() { f.gate.Store(nil); close(c) }
}

func (f *gatedFS) Open(name string, create bool) (vfs.File, error) {
	file, err := f.FS.Open(name, create)
	if err != nil || path.Dir(name) != journalDir {
		return file, err
	}
	return &gatedFile{file, f.gate}, nil
}

type gatedFile struct {
	vfs.File
	gate *atomic.Pointer[chan struct{}]
}

func (f *gatedFile) Sync() error {
	if c := f.gate.Load(); c != nil {
		<-*c
	}
	return f.File.Sync()
}

// Successive calls of one session share a sync: each gets its place in the order while the first one's sync is in
// progress. None of them returns before it is durable, and Settled waits as long.
func TestPipelinedCallsShareASync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newGated()
		s := pipelined(t, f, 1)
		before := s.Stats().Fsyncs
		open := f.close()
		var calls []<-chan error
		for n := range 5 {
			calls = append(calls, begin(s, "sess_0", callName(0, n)))
			synctest.Wait() // until the first one's sync is in progress
		}
		if values, err := s.Context(t.Context(), "sess_0"); err != nil || string(values["last"]) != `"call_00_04"` {
			t.Errorf("the next call would see the context %s, %v", values["last"], err)
		}
		settled := make(chan error, 1)
		go func() { settled <- s.Settled() }()
		synctest.Wait()
		for n, done := range calls {
			if len(done) > 0 {
				t.Errorf("call %d returned before its sync: %v", n, <-done)
			}
		}
		if len(settled) > 0 {
			t.Errorf("what was read was called durable before its sync: %v", <-settled)
		}
		open()
		for _, done := range calls {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := <-settled; err != nil {
			t.Error(err)
		}
		if got := s.Stats().Fsyncs - before; got != 2 {
			t.Errorf("five calls cost %d syncs, want 2: the first one's, and one for all that came meanwhile", got)
		}
		s.kill()
	})
}

// A single failed sync has no consequences: its entries are written to a new segment. While syncs keep failing, each
// call that is not durable fails, including later ones, and Settled returns an error. The store recovers by itself and
// has all that it had.
func TestPipelinedSyncFails(t *testing.T) {
	t.Parallel()
	f := vfstest.New()
	s := pipelined(t, f, 1)
	var failures atomic.Int64
	f.Fail = func(_ int, op vfstest.Op) (error, bool) {
		if op.Kind == "sync" && failures.Add(-1) >= 0 {
			return vfstest.ErrInjected, false
		}
		return nil, false
	}
	failures.Store(1)
	if err := <-begin(s, "sess_0", callName(0, 0)); err != nil {
		t.Fatalf("one failed sync failed a call: %v", err)
	}
	s.flusher.round(false)
	failures.Store(1 << 40)
	lost := begin(s, "sess_0", callName(0, 1))
	if err := <-lost; !errors.Is(err, store.ErrReadOnly) {
		t.Fatalf("a call whose sync failed returned %v", err)
	}
	if err := <-begin(s, "sess_0", callName(0, 2)); !errors.Is(err, store.ErrReadOnly) {
		t.Fatalf("a call that followed returned %v", err)
	}
	if err := s.Settled(); !errors.Is(err, store.ErrReadOnly) {
		t.Fatalf("what was read is called durable: %v", err)
	}
	if err := s.Sync(); err == nil {
		t.Fatal("the files were written ahead of the journal")
	}
	left, err := openStore(t, "sim", simOptions(t, f.Crash(len(f.Ops()), vfstest.LoseAll, nil), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	checkPipelined(t, left, 1, map[string]bool{callName(0, 0): true}, "power cut while syncs fail")
	if n := len(storetest.Records(t, left, "sess_0")); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	left.kill()
	failures.Store(0)
	s.flusher.round(false)
	if err := errors.Join(s.Ready(), s.Settled(), <-begin(s, "sess_0", callName(0, 2))); err != nil {
		t.Fatalf("after syncs work again: %v", err)
	}
	s.kill()
	left, err = openStore(t, "sim", simOptions(t, f.Crash(len(f.Ops()), vfstest.LoseAll, nil), time.Now))
	if err != nil {
		t.Fatal(err)
	}
	checkPipelined(t, left, 1, map[string]bool{callName(0, 1): true, callName(0, 2): true},
		"power cut after the recovery")
	left.kill()
}

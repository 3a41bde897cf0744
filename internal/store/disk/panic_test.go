package disk

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/vfs"
	"github.com/recurgentd/recurgentd/internal/store/storetest"
)

// inBackground calls do in a goroutine. A panic that reaches it is returned as an error.
func inBackground(do func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- errors.New("the panic reached the client")
			}
		}()
		done <- do()
	}()
	return done
}

func answer(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("a commit waits for ever")
		return nil
	}
}

// A panic while planning one commit refuses only that commit. Others that wait are committed.
func TestPanicInPlanningRefusesOneCommit(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), testOptions(t))
	ctx := context.Background()
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil); err != nil {
		t.Fatal(err)
	}
	entered, goOn := make(chan bool), make(chan bool)
	n := s.namespace(agent.DefaultNamespace)
	first := inBackground(func() error {
		return n.commit(ctx, &commit{entry: n.newEntry(), alone: true,
			check: func() error { close(entered); <-goOn; panic("a bug") }})
	})
	<-entered
	beside := storetest.NewCommit("sess_1", "call_1", time.Now())
	second := inBackground(func() error { return s.CommitCall(ctx, beside) })
	waiting(t, s, 1)
	close(goOn)
	if err := answer(t, first); err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("got %v, want an error that says what panicked", err)
	}
	if err := answer(t, second); err != nil || beside.Record.Seq != 1 {
		t.Errorf("the commit beside it got seq %d, %v", beside.Record.Seq, err)
	}
	if err := s.Ready(); err != nil {
		t.Errorf("planning changes nothing, so the store stays ready; got %v", err)
	}
}

// waiting returns once n commits wait for the leader.
func waiting(t *testing.T, s *testStore, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); runtime.Gosched() {
		s.sequencer.waiting.Lock()
		got := len(s.sequencer.queue)
		s.sequencer.waiting.Unlock()
		if got == n {
			return
		}
	}
	t.Fatalf("%d commits never waited", n)
}

// A panic while applying a batch leaves memory in doubt. The store is no longer ready, all waiting commits fail, the
// files do not change, and the next start has what the journal accepted.
func TestPanicInApplyingMakesTheStoreUnready(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, testOptions(t))
	ctx := context.Background()
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil); err != nil {
		t.Fatal(err)
	}
	entered, goOn := make(chan bool), make(chan bool)
	s.Watch("", func(store.Change) { close(entered); <-goOn; panic("a bug") })
	first := inBackground(func() error {
		_, err := s.PutTool(ctx, agent.Tool{Role: "calculator"}, 0, nil)
		return err
	})
	<-entered
	second := inBackground(func() error { return s.AppendAudit(ctx, agent.AuditEntry{ID: "audit_1"}) })
	waiting(t, s, 1)
	close(goOn)
	for name, done := range map[string]<-chan error{"the one that panicked": first, "the one beside it": second} {
		if err := answer(t, done); !errors.Is(err, store.ErrReadOnly) || !strings.Contains(err.Error(), "restarted") {
			t.Errorf("%s got %v, want ErrReadOnly that asks for a restart", name, err)
		}
	}
	s.flusher.round(true)
	if err := s.Ready(); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("ready says %v, want ErrReadOnly until the restart", err)
	}
	if _, err := s.Session(ctx, "sess_1"); err != nil {
		t.Errorf("reads go on; got %v", err)
	}
	if err := s.close(); err == nil {
		t.Error("Close wrote files from a memory that is in doubt")
	}
	next := open(t, dir, testOptions(t))
	if _, err := next.Tool(ctx, "calculator"); err != nil {
		t.Errorf("after the restart: %v, want what was in the journal", err)
	}
	if err := next.CommitCall(ctx, storetest.NewCommit("sess_1", "call_2", time.Now())); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

// A panic of the file system counts as a failed write. The commit is refused, and commits are accepted again once there
// is a new segment.
func TestPanicInWritingIsAFailedWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner, err := vfs.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	fs := &panickingFS{FS: inner}
	o := testOptions(t)
	o.FS, o.Flush = fs, -1
	s := open(t, dir, o)
	ctx := context.Background()
	if err := s.CreateSession(ctx, agent.Session{ID: "sess_1"}, nil); err != nil {
		t.Fatal(err)
	}
	fs.armed.Store(true)
	err = answer(t, inBackground(func() error {
		return s.CommitCall(ctx,
			storetest.NewCommit("sess_1", "call_1", time.Now()))
	}))
	if !errors.Is(err, store.ErrReadOnly) || s.Ready() == nil {
		t.Errorf("got %v, ready %v, want both to be ErrReadOnly", err, s.Ready())
	}
	fs.armed.Store(false)
	s.flusher.round(false)
	c := storetest.NewCommit("sess_1", "call_2", time.Now())
	if err := s.CommitCall(ctx, c); err != nil || c.Record.Seq != 1 {
		t.Errorf("afterwards: seq %d, %v, want the first record", c.Record.Seq, err)
	}
}

type panickingFS struct {
	vfs.FS
	armed atomic.Bool
}

func (f *panickingFS) Open(name string, create bool) (vfs.File, error) {
	inner, err := f.FS.Open(name, create)
	return &panickingFile{inner, f}, err
}

type panickingFile struct {
	vfs.File
	fs *panickingFS
}

func (f *panickingFile) WriteAt(b []byte, off int64) (int, error) {
	if f.fs.armed.Load() {
		panic("a bug")
	}
	return f.File.WriteAt(b, off)
}

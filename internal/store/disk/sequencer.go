package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/recurgentd/recurgentd/internal/store"
	"github.com/recurgentd/recurgentd/internal/store/disk/locks"
	"github.com/recurgentd/recurgentd/internal/store/disk/wal"
)

// sequencer puts commits in order. It plans, journals and applies one batch at a time.
type sequencer struct {
	*shared
	kick chan<- struct{} // wakes the flusher

	mu      locks.Mutex // guards the fields below and the batches of all namespaces
	closed  bool        // guarded by mu, as all below
	journal *wal.Log
	frame   wal.Batch
	head    []byte       // buffer for the head of the entry that is being added to the frame
	changed []*namespace // namespaces that the current batch changes
	timer   *time.Timer  // syncs entries that were acknowledged before their sync; nil if there are none

	waiting locks.Mutex
	queue   []*commit // guarded by waiting
	leading bool      // guarded by waiting

	commits, fsyncs, written atomic.Int64 // figures for Stats; written is in bytes
}

// commit journals the entry together with other entries that wait, and applies it. One of the waiting goroutines leads:
// it writes a batch for all of them while the next batch gathers. A single client thus pays one fsync and no goroutine
// switch, and many clients share an fsync. The entry is durable when commit returns, unless it is late: see await.
//
// If ctx ends while the entry waits for its batch, the entry is withdrawn. Once its batch is being written, commit
// waits for the outcome.
func (s *sequencer) commit(ctx context.Context, c *commit) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.health.ready(); err != nil {
		return err
	}
	lead, err := s.enter(ctx, c)
	if !lead {
		return err
	}
	// Calls that are about to commit can share the sync. Gosched returns at once if nothing else can run.
	runtime.Gosched()
	s.waiting.Lock()
	s.leading = true
	batch := s.take()
	s.waiting.Unlock()
	defer s.handOver(c, batch)
	s.process(batch)
	return c.err
}

// process plans, writes and applies a batch. It does not panic: one goroutine leads for all, and a panic would leave
// the others waiting. Panics are recovered by prepare, package wal and breakDown.
func (s *sequencer) process(batch []*commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.breakDown(batch)
	planned := s.plan(batch)
	if planned == 0 {
		return
	}
	sync := slices.ContainsFunc(batch, func(c *commit) bool { return c.err == nil && !c.late })
	// Readers must not see an entry that the journal refused, so the journal comes before apply.
	if err := s.journal.Write(&s.frame, sync); err != nil {
		s.health.fail(err)
		for _, c := range batch {
			if c.err == nil {
				c.err = fmt.Errorf("%w: %w", store.ErrReadOnly, err)
			}
		}
		return
	}
	if sync {
		s.fsyncs.Add(1)
	} else if s.timer == nil && s.o.Interval > 0 {
		s.timer = time.AfterFunc(s.o.Interval, func() {
			if err := s.settle(); err != nil {
				s.health.fail(err)
			}
		})
	}
	s.commits.Add(int64(planned))
	s.written.Add(int64(s.frame.Size()))
	s.apply(batch)
	if s.journal.Bytes() > 2*s.o.Segment {
		select {
		case s.kick <- struct{}{}:
		default: // the flusher is awake already
		}
	}
}

// settle makes all entries of the journal durable.
func (s *sequencer) settle() error {
	s.mu.Lock()
	s.stopTimer()
	// Commits go on while the sync waits for the disk without mu.
	last := s.journal.Next() - 1
	s.mu.Unlock()
	return s.await(last)
}

// await waits until the entries up to lsn are durable. Readers see them already, so they cannot be refused any more. If
// the sync fails, await tries a new segment. If that fails as well, it returns store.ErrReadOnly, and the entries are
// kept only if the store recovers.
func (s *sequencer) await(lsn uint64) error {
	err := s.sync(lsn)
	if err == nil {
		return nil
	}
	s.health.fail(err)
	if s.reopen() == nil && s.sync(lsn) == nil {
		return nil
	}
	return fmt.Errorf("%w: whether the change was stored is unknown until it can write again: %w",
		store.ErrReadOnly, err)
}

// sync waits until the entries up to lsn are durable and counts the sync if this call made it.
func (s *sequencer) sync(lsn uint64) error {
	synced, err := s.journal.Sync(lsn)
	if synced {
		s.fsyncs.Add(1)
	}
	return err
}

// stopTimer stops the pending sync, if any. The caller holds mu.
func (s *sequencer) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// plan plans the commits of a batch, adds their entries to the frame, and returns how many there are. Refused commits
// have err set.
func (s *sequencer) plan(batch []*commit) (planned int) {
	s.frame.Reset()
	for _, n := range s.changed {
		n.batch.reset()
	}
	s.changed = s.changed[:0]
	next, unsure := s.journal.Next(), s.journal.Durable()+1
	if unsure == next {
		unsure = 0
	}
	for _, c := range batch {
		if c.err = s.health.ready(); c.err != nil {
			continue
		}
		if n := c.entry.namespace; !slices.Contains(s.changed, n) {
			s.changed = append(s.changed, n)
		}
		c.entry.lsn, c.entry.Unsure = next, unsure
		if c.err = s.prepare(c); c.err == nil {
			planned++
			next++
		}
	}
	return planned
}

// prepare plans a commit and adds its entry to the frame. If it refuses the commit, it takes back what was planned. A
// panic refuses only this commit, because planning changes nothing that others see.
func (s *sequencer) prepare(c *commit) (err error) {
	n := c.entry.namespace
	before := n.batch.mark()
	defer func() {
		if v := recover(); v != nil {
			s.log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Msg("planning a commit panicked")
			err = fmt.Errorf("planning a commit panicked: %v", v)
		}
		if err != nil {
			n.batch.undo(before)
		}
	}()
	if err := n.broken(); err != nil {
		return err
	}
	// check comes first, because it may complete the entry. Encoding comes last, because planning assigns figures and
	// links the audit entry.
	if c.check != nil {
		if err := c.check(); err != nil {
			return err
		}
	}
	if err := n.plan(c.entry); err != nil {
		return err
	}
	if err := n.auditTrail.plan(c.entry); err != nil {
		return err
	}
	if c.tail != nil {
		s.head = c.entry.appendHead(s.head[:0])
		s.frame.Add(s.head, c.tail)
		return nil
	}
	text, err := json.Marshal(c.entry)
	if err != nil {
		return err
	}
	s.frame.Add(text)
	return nil
}

// apply shows readers the changes of a batch.
func (s *sequencer) apply(batch []*commit) {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	defer s.breakDown(batch) // before the flusher can look
	for _, c := range batch {
		if c.err == nil {
			c.entry.namespace.apply(c.entry)
		}
	}
	s.feed.send()
}

// breakDown recovers from a panic after a batch was planned. The entries may be durable while memory holds only half of
// one. It marks the store as broken: no commit is accepted, nothing in memory reaches the files any more, and the next
// start replays the journal.
func (s *sequencer) breakDown(batch []*commit) {
	v := recover()
	if v == nil {
		return
	}
	s.log.Error().Interface("panic", v).Bytes("stack",
		debug.Stack()).Msg("a commit panicked; restart the daemon, which replays the journal")
	err := fmt.Errorf("%w: a commit panicked: %v; the daemon must be restarted", store.ErrReadOnly, v)
	s.health.breakDown(err)
	for _, c := range batch {
		if c.err == nil {
			c.err = err
		}
	}
}

// close stops accepting commits. It returns false if it was called before.
func (s *sequencer) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	s.health.trouble.Store(&trouble{fmt.Errorf("%w: the store is closed", store.ErrReadOnly)})
	return true
}

// reopen starts a new journal segment if a write or a sync failed.
func (s *sequencer) reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal.Writable() {
		return nil
	}
	return s.journal.Rotate()
}

// recovered makes the store writable again if the journal is.
func (s *sequencer) recovered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.journal.Writable() {
		s.health.recovered()
	}
}

// rotate starts a new journal segment. It does nothing if the journal cannot be written.
func (s *sequencer) rotate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.journal.Writable() {
		return nil
	}
	return s.journal.Rotate()
}

// cut drops the segments that hold only entries up to lsn, and returns them. The caller removes their files.
func (s *sequencer) cut(lsn uint64) []wal.Segment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.journal.Cut(lsn)
}

// closeJournal closes the journal's file and stops the timer.
func (s *sequencer) closeJournal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopTimer()
	s.journal.Close()
}

// commit is an entry that waits for its place in the journal.
type commit struct {
	entry *entry
	tail  []byte // encoded entry of a call without the assigned figures; nil for other entries
	alone bool   // the batch holds this entry only
	late  bool   // applied before it is synced
	// check runs in the entry's turn and sees the state just before it. It may refuse the entry or complete it. It may
	// be nil.
	check func() error

	err    error
	signal chan bool  // true means that this commit leads the next batch, false that its outcome is known
	room   [4]*commit // for the batch that it leads, to save an allocation
}

// enter queues the commit and waits until it leads a batch or its outcome is known.
func (s *sequencer) enter(ctx context.Context, c *commit) (lead bool, err error) {
	s.waiting.Lock()
	s.queue = append(s.queue, c)
	if !s.leading {
		s.leading = true
		s.waiting.Unlock()
		return true, nil
	}
	c.signal = make(chan bool, 1)
	s.waiting.Unlock()
	select {
	case lead = <-c.signal:
		return lead, c.err
	case <-ctx.Done():
	}
	if s.withdraw(c) {
		return false, context.Cause(ctx)
	}
	lead = <-c.signal
	return lead, c.err
}

// withdraw removes a commit from the queue. It returns false if the commit is in a batch already or was chosen to lead.
func (s *sequencer) withdraw(c *commit) bool {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	i := slices.Index(s.queue, c)
	if i < 0 || len(c.signal) > 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// handOver ends the leadership of c: the next commit in the queue leads, and the others of the batch learn their
// results.
func (s *sequencer) handOver(c *commit, batch []*commit) {
	s.waiting.Lock()
	if len(s.queue) > 0 {
		s.queue[0].signal <- true
	} else {
		s.leading = false
	}
	s.waiting.Unlock()
	for _, other := range batch {
		if other != c {
			other.signal <- false
		}
	}
}

// take removes the next batch from the queue: the first commit and those after it, up to one that must be alone. The
// caller holds waiting.
func (s *sequencer) take() []*commit {
	n := 1
	if !s.queue[0].alone {
		for n < len(s.queue) && !s.queue[n].alone {
			n++
		}
	}
	batch := append(s.queue[0].room[:0], s.queue[:n]...)
	s.queue = slices.Delete(s.queue, 0, n)
	return batch
}

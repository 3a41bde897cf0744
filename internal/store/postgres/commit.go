package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
	"github.com/recurgentd/recurgentd/internal/store"
)

// waiting is a call that waits for its commit. Its goroutine owns it until it is queued and after done, the committer in between.
type waiting struct {
	n     *Namespace
	c     *store.CallCommit
	now   time.Time // by the store's clock
	until time.Time // when it is given up, by the process's clock

	outcome, pattern []byte          // encoded
	log              *agent.LogEntry // with what the commit assigned
	err              error
	done             chan struct{}
}

// CommitCall is part of store.Namespace.
func (n *Namespace) CommitCall(ctx context.Context, c *store.CallCommit) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	w := &waiting{n: n, c: c, now: n.store.o.Now(), until: time.Now().Add(n.store.o.Retry), done: make(chan struct{})}
	err := w.commit(ctx)
	endDrafts(c.Files, err == nil)
	if err != nil {
		return unavailable(err)
	}
	c.Assign(w.log)
	if c.Ordered != nil {
		c.Ordered()
	}
	return nil
}

// commit has the committer commit the call.
func (w *waiting) commit(ctx context.Context) error {
	if err := w.encode(); err != nil {
		return err
	}
	if err := sealDrafts(w.c.Files); err != nil {
		return err
	}
	if err := w.n.ensure(ctx); err != nil {
		return err
	}
	q := w.n.store.committer
	if err := q.add(w); err != nil {
		return err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if q.withdraw(w) {
			return context.Cause(ctx)
		}
		<-w.done // it is being written
	}
	return w.err
}

// ensure makes the namespace, if it is not there. That may be done twice, so it is tried again whatever a broken connection leaves open.
func (n *Namespace) ensure(ctx context.Context) error {
	if n.gone.Load() {
		return errErased
	}
	if n.id.Load() != none {
		return n.store.closing()
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := n.change(ctx, func(context.Context, *change) error { return nil })
		if away(err) {
			return struct{}{}, err
		}
		return struct{}{}, permanent(err)
	}, backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(n.store.o.Retry))
	return final(ctx, err)
}

// encode refuses a commit that holds something which is not JSON, before anything is changed, and encodes what no other call has a say in.
func (w *waiting) encode() (err error) {
	c := w.c
	for what, raw := range map[string]json.RawMessage{"effects": c.Effects, "reply": c.Reply} {
		if raw != nil && !json.Valid(raw) {
			return fmt.Errorf("%s of call %s is not JSON", what, c.Log.CallID)
		}
	}
	if c.Content != nil && !json.Valid(c.Content.Value) {
		return fmt.Errorf("content of call %s is not JSON", c.Log.CallID)
	}
	if c.Context != nil {
		if err := valid(c.Context); err != nil {
			return err
		}
	}
	if c.Outcome.Status != "" && c.Log.CallID != "" {
		if w.outcome, err = json.Marshal(&c.Outcome); err != nil {
			return err
		}
	}
	if c.Pattern != nil {
		if w.pattern, err = json.Marshal(c.Pattern); err != nil {
			return err
		}
	}
	for i := range c.Artifacts {
		if err := encodable(&c.Artifacts[i]); err != nil {
			return err
		}
	}
	for i := range c.Tools {
		if r := c.Tools[i].Register; r != nil {
			if _, err := json.Marshal(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// encodable refuses a change that would make an artifact that has no JSON.
func encodable(c *agent.ArtifactChange) error {
	if c.Generation == nil && c.Fixture == nil && c.Example == nil && c.Examples == nil && c.Verdict == nil &&
		c.Failure == nil && c.Effects == nil && c.Manifest == nil {
		return nil // numbers and texts
	}
	_, err := json.Marshal(c)
	return err
}

var (
	logCode    = jsonenc.For[agent.LogEntry]()
	recordRoom = 768
)

// encodeLog returns a log entry as it is stored.
func encodeLog(e *agent.LogEntry) ([]byte, error) {
	w := jsonenc.Writer{KeepHTML: true}
	logCode.Append(&w, e)
	return w.Buf, w.Err
}

// encodeRecord returns a history record as it is stored.
func encodeRecord(r *agent.Record) ([]byte, error) {
	w := jsonenc.Writer{Buf: make([]byte, 0, recordRoom), KeepHTML: true}
	r.AppendJSON(&w)
	return w.Buf, w.Err
}

// committer commits the calls that wait: one transaction for all of them, one after another.
type committer struct {
	store *Store
	wake  chan struct{} // has room for one
	knows bool          // the last group found things as this replica knew them; of run's goroutine

	mu     sync.Mutex
	queue  []*waiting // guarded by mu, as all below
	enough int        // so many calls are waited for
	closed bool
}

// groupSize bounds the calls of one transaction.
const groupSize = 256

func newCommitter(s *Store) *committer { return &committer{store: s, wake: make(chan struct{}, 1)} }

func (q *committer) add(w *waiting) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errClosed
	}
	q.queue = append(q.queue, w)
	enough := len(q.queue) >= q.enough
	q.mu.Unlock()
	if enough {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// withdraw takes a call back that is not being written yet, and reports whether it could.
func (q *committer) withdraw(w *waiting) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, x := range q.queue {
		if x == w {
			q.queue = append(q.queue[:i:i], q.queue[i+1:]...)
			return true
		}
	}
	return false
}

// take returns calls that wait, the oldest first.
func (q *committer) take() []*waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.queue), groupSize)
	group := q.queue[:n:n]
	q.queue = q.queue[n:]
	return group
}

// close refuses further calls. Those that wait are still committed.
func (q *committer) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// run commits until ctx ends and nobody waits any more.
func (q *committer) run(ctx context.Context) {
	for {
		for group := q.take(); len(group) > 0; group = q.take() {
			began := time.Now()
			q.commit(ctx, group)
			q.gather(ctx, len(group), time.Since(began))
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			if group := q.take(); len(group) > 0 {
				q.commit(ctx, group)
				continue
			}
			return
		}
	}
}

// gather waits a little for those whose calls were just committed, since who calls without pause is about to call again: they then share a
// transaction with those who wait, in place of two that alternate. Nobody waits for longer than an eighth of what the transaction took.
func (q *committer) gather(ctx context.Context, committed int, took time.Duration) {
	if !q.expect(committed) {
		return
	}
	defer q.expect(0)
	patience := time.NewTimer(took / 8)
	defer patience.Stop()
	select {
	case <-q.wake:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// expect sets that so many calls more than wait now are enough to go on with, and reports whether that is worth a wait.
func (q *committer) expect(more int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough = min(len(q.queue)+more, groupSize)
	if more == 0 || q.enough <= max(1, len(q.queue)) {
		return false
	}
	select {
	case <-q.wake: // of those who are counted already
	default:
	}
	return true
}

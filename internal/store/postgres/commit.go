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

// waiting is a call that waits for its commit. Its own goroutine owns it before it is queued and after done is closed;
// the committer owns it in between.
type waiting struct {
	n     *Namespace
	c     *store.CallCommit
	now   time.Time // from the store's clock
	until time.Time // deadline for retries, from the process's clock

	outcome, pattern []byte          // encoded
	log              *agent.LogEntry // as changed by the commit
	err              error
	done             chan struct{}
}

// CommitCall implements store.Namespace.
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

// commit hands the call to the committer and waits for it.
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
		<-w.done // too late to withdraw: it is being written
	}
	return w.err
}

// ensure creates the namespace if it does not exist. Creating it twice is harmless, so it retries even if a broken
// connection leaves the result open.
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

// encode returns an error if the commit contains invalid JSON, before anything changes. It encodes the parts that do
// not depend on other calls.
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

// encodable returns an error if the change would make an artifact that cannot be encoded as JSON.
func encodable(c *agent.ArtifactChange) error {
	if c.Generation == nil && c.Fixture == nil && c.Example == nil && c.Examples == nil && c.Verdict == nil &&
		c.Failure == nil && c.Effects == nil && c.Manifest == nil {
		return nil // only numbers and strings
	}
	_, err := json.Marshal(c)
	return err
}

var (
	logCode    = jsonenc.For[agent.LogEntry]()
	recordRoom = 768
)

// encodeLog encodes a log entry as it is stored.
func encodeLog(e *agent.LogEntry) ([]byte, error) {
	w := jsonenc.Writer{KeepHTML: true}
	logCode.Append(&w, e)
	return w.Buf, w.Err
}

// encodeRecord encodes a history record as it is stored.
func encodeRecord(r *agent.Record) ([]byte, error) {
	w := jsonenc.Writer{Buf: make([]byte, 0, recordRoom), KeepHTML: true}
	r.AppendJSON(&w)
	return w.Buf, w.Err
}

// committer commits the waiting calls in groups, one transaction after another. Its goroutine is run.
type committer struct {
	store *Store
	wake  chan struct{} // has room for one
	knows bool          // the last group found all rows as this replica knew them; used by run only

	mu     sync.Mutex
	queue  []*waiting // guarded by mu, as is everything below
	enough int        // queue length at which run is woken
	closed bool
}

// groupSize is the maximum number of calls in one transaction.
const groupSize = 256

func newCommitter(s *Store) *committer { return &committer{store: s, wake: make(chan struct{}, 1)} }

// add queues a call. It returns errClosed if the committer is closed.
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

// withdraw removes a call from the queue and reports whether it was still there.
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

// take removes waiting calls from the queue, oldest first.
func (q *committer) take() []*waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.queue), groupSize)
	group := q.queue[:n:n]
	q.queue = q.queue[n:]
	return group
}

// close rejects further calls. Calls in the queue are still committed.
func (q *committer) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// run commits groups until ctx ends and the queue is empty.
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

// gather waits briefly for the clients whose calls were just committed, because a client that calls without pause is
// about to call again. Its next call then shares a transaction with those already waiting, instead of two groups that
// alternate. The wait is at most an eighth of the time that the transaction took.
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

// expect sets how many more calls than now are enough to continue, and reports whether waiting for them makes sense.
func (q *committer) expect(more int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.enough = min(len(q.queue)+more, groupSize)
	if more == 0 || q.enough <= max(1, len(q.queue)) {
		return false
	}
	select {
	case <-q.wake: // signals for calls that are already counted
	default:
	}
	return true
}

// attemptLimit is the timeout for one attempt of a transaction. It gives up on a connection that does not answer.
const attemptLimit = 10 * time.Second

// commit commits a group and finishes its calls. While the database is away it retries for as long as the calls wait. A
// call that an earlier attempt committed without an acknowledgement is recognized by its id. If the database rejects a
// group, each call is retried alone.
func (q *committer) commit(ctx context.Context, calls []*waiting) {
	pauses := pace()
	for tries := 1; ; tries++ {
		known := q.knows && tries == 1
		err := q.try(ctx, calls, known)
		switch {
		case err == nil:
			end(calls, nil)
			return
		case known && contended(err):
			// The caches are outdated. The next attempt reads the rows.
			q.knows = false
			continue
		case contended(err) && tries < contentions: // a conflict with another replica: retry after a pause
		case away(err):
			q.store.health.away(err)
			// Only the calls whose deadline has passed fail.
			if calls = expire(calls, err); len(calls) == 0 {
				return
			}
		case len(calls) > 1:
			// One call may be the reason. It must not fail the others.
			for _, w := range calls {
				q.commit(ctx, []*waiting{w})
			}
			return
		default:
			end(calls, err)
			return
		}
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			end(calls, errClosed)
			return
		}
	}
}

// try commits a group in one transaction. With known set, it first tries to do so without reading rows. If it returns
// nil, calls that cannot be committed have err set.
func (q *committer) try(ctx context.Context, calls []*waiting, known bool) error {
	// Once an attempt has begun, closing the store does not interrupt it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptLimit)
	defer cancel()
	began := time.Now()
	conn, err := q.store.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	g, done := newGroup(q.store, calls), false
	if known {
		done, err = g.runKnown(ctx, conn)
	}
	// The caches did not suffice, or were not tried.
	if !done && err == nil {
		g = newGroup(q.store, calls)
		err = g.run(ctx, conn)
		q.knows = !g.surprised
	}
	if err != nil {
		if !conn.Conn().IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK") // a connection on which this fails is not reused
		}
		return err
	}
	q.store.commits.groups.Add(1)
	q.store.commits.took.Add(int64(time.Since(began)))
	g.committed()
	return nil
}

// end finishes the calls. err is the result of those without an error of their own.
func end(calls []*waiting, err error) {
	for _, w := range calls {
		if w.err == nil {
			w.err = err
		}
		close(w.done)
	}
}

// expire finishes the calls whose deadline has passed, and returns the others.
func expire(calls []*waiting, err error) (rest []*waiting) {
	now := time.Now()
	for _, w := range calls {
		if now.Before(w.until) {
			rest = append(rest, w)
			continue
		}
		end([]*waiting{w}, err)
	}
	return rest
}

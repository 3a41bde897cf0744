package postgres

import (
	"context"
	"time"
)

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

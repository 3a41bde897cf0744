package postgres

import (
	"context"
	"time"
)

// attemptLimit bounds one try of a transaction: a connection that does not answer is given up.
const attemptLimit = 10 * time.Second

// commit commits a group and ends its calls. It tries again while the database is away, for as long as the calls wait; that a call was
// committed already, by a try whose answer was lost, is seen by its id. Where the database refuses a group, each call is tried alone.
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
			q.knows = false
			continue
		case contended(err) && tries < contentions:
		case away(err):
			q.store.health.away(err)
			if calls = expire(calls, err); len(calls) == 0 {
				return
			}
		case len(calls) > 1:
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

// try commits a group in one transaction, where known is true by what this replica knows, if that is enough. Calls that cannot be committed have err
// set when it returns nil.
func (q *committer) try(ctx context.Context, calls []*waiting, known bool) error {
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
	if !done && err == nil {
		g = newGroup(q.store, calls)
		err = g.run(ctx, conn)
		q.knows = !g.surprised
	}
	if err != nil {
		if !conn.Conn().IsClosed() {
			_, _ = conn.Exec(ctx, "ROLLBACK") // a connection that cannot is not used again
		}
		return err
	}
	q.store.commits.groups.Add(1)
	q.store.commits.took.Add(int64(time.Since(began)))
	g.committed()
	return nil
}

// end ends calls that have no error of their own with that one.
func end(calls []*waiting, err error) {
	for _, w := range calls {
		if w.err == nil {
			w.err = err
		}
		close(w.done)
	}
}

// expire ends the calls that waited for long enough, and returns the others.
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

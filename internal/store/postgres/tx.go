package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	// readRetry is how long a read, or the start of a change, is retried while the database is away.
	readRetry = 3 * time.Second
	// contentions is how often a change is attempted if it conflicts with others.
	contentions = 20
	// idleLimit ends a transaction that its replica left idle, such as a stopped process, to release its locks.
	idleLimit = "10s"
)

// change is one transaction that changes a namespace.
type change struct {
	pgx.Tx
	n    *Namespace
	ns   int64             // id of the namespace
	feed []store.Change    // changes for the watchers
	left *agent.AuditEntry // the entry that the change adds to the trail; nil means none
}

// Changed reports a change to the watchers once the transaction is committed.
func (c *change) Changed(x store.Change) {
	x.Namespace = c.n.name
	c.feed = append(c.feed, x)
}

// send sends a batch and waits until it has run.
func (c *change) send(ctx context.Context, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return c.SendBatch(ctx, b).Close()
}

// change runs do in a transaction that changes the namespace, and creates the namespace if needed. All of it is
// committed or nothing. do may run more than once, so it must not modify state outside of the transaction cumulatively.
// If the connection breaks during the commit, the change may or may not have been made. When change returns, the
// watchers of this replica have seen the change, unless the feed is held up.
func (n *Namespace) change(ctx context.Context, do func(ctx context.Context, c *change) error) error {
	if n.gone.Load() {
		return errErased
	}
	if err := n.store.closing(); err != nil {
		return err
	}
	var at feedPlace
	var left *agent.AuditEntry
	var ns int64
	watchers := n.store.awaiting()
	if err := n.store.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		c := &change{Tx: tx, n: n}
		var err error
		if c.ns, err = n.hold(ctx, tx); err != nil {
			return err
		}
		if err := do(ctx, c); err != nil {
			return err
		}
		left, ns = c.left, c.ns
		at, err = publish(ctx, tx, c.ns, c.feed)
		return err
	}); err != nil {
		return err
	}
	n.id.CompareAndSwap(none, ns)
	store.Acknowledge(ctx, left)
	n.store.commits.calls.Add(1)
	n.store.commits.transactions.Add(1)
	if at != (feedPlace{}) {
		n.store.hint()
		n.store.shown(watchers, at)
	}
	return nil
}

// repeat runs a change that may be made twice. It also retries if a broken connection leaves open whether the change
// was made.
func (n *Namespace) repeat(ctx context.Context, do func(ctx context.Context, c *change) error) error {
	return n.store.try(ctx, func(ctx context.Context) error { return n.change(ctx, do) }, isAway)
}

// transact runs do in a transaction. It retries on conflicts with others and, until the commit is sent, while the
// database is away.
func (s *Store) transact(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	tries, sent := 0, false
	return s.try(ctx, func(ctx context.Context) (err error) {
		tries++
		sent, err = s.once(ctx, do)
		return err
	}, func(err error) bool { return contended(err) && tries < contentions || isAway(err) && !sent })
}

// once runs do in one transaction. sent reports whether its commit was sent.
func (s *Store) once(ctx context.Context, do func(context.Context, pgx.Tx) error) (sent bool, err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx)) // a failure means that there is nothing to roll back
		}
	}()
	if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '"+idleLimit+"'"); err != nil {
		return false, err
	}
	if err := do(ctx, tx); err != nil {
		return false, err
	}
	return true, tx.Commit(ctx)
}

// read runs a read-only query, and retries while the database is away.
func (s *Store) read(ctx context.Context, do func(ctx context.Context) error) error {
	if err := s.closing(); err != nil {
		return err
	}
	return s.try(ctx, do, isAway)
}

// try runs do, and retries it as long as again accepts the error. It stops once the database has been away for
// goneAfter. With store.Patience it keeps trying for as long as commits do, because a call in flight cannot be
// rejected.
func (s *Store) try(ctx context.Context, do func(context.Context) error, again func(error) bool) error {
	patience, patient := readRetry, store.IsPatient(ctx)
	if patient {
		patience = s.o.Retry
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		within, end, err := s.health.while(ctx)
		if err != nil {
			if patient {
				return struct{}{}, err
			}
			return struct{}{}, permanent(err)
		}
		defer end()
		err = do(within)
		// health has canceled do, so its error is only a consequence. Report the cause.
		if err != nil && ctx.Err() == nil && within.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(within), err)
			if !patient {
				return struct{}{}, permanent(err)
			}
		}
		if again(err) {
			return struct{}{}, err
		}
		return struct{}{}, permanent(err)
	}, backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(patience))
	return unavailable(final(ctx, err))
}

// isAway reports whether the error means that the database is away, either from the attempt or from health.
func isAway(err error) bool { return away(err) || errors.Is(err, store.ErrAway) }

// pace returns the pauses between attempts.
func pace() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 5*time.Millisecond, 500*time.Millisecond
	return b
}

// permanent marks an error that is not retried. nil stays nil.
func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// final returns the error of the last attempt, or the cause if the caller's context has ended.
func final(ctx context.Context, err error) error {
	var p *backoff.PermanentError
	if errors.As(err, &p) {
		err = p.Unwrap()
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w", store.ErrNotFound)
	}
	return err
}

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
	// readRetry bounds how long a read, or the begin of a change, is tried again while the database is away.
	readRetry = 3 * time.Second
	// contentions is how often a change is tried again that others were in the way of.
	contentions = 20
	// idleLimit ends a transaction that its replica left standing, a stopped process for one, so that the locks are given back.
	idleLimit = "10s"
)

// change is one transaction that changes a namespace.
type change struct {
	pgx.Tx
	n    *Namespace
	ns   int64             // the namespace's id
	feed []store.Change    // what watchers are to see
	left *agent.AuditEntry // that the change adds to the trail; nil for none
}

// Changed reports a change to the watchers, once it is committed.
func (c *change) Changed(x store.Change) {
	x.Namespace = c.n.name
	c.feed = append(c.feed, x)
}

// send sends a batch and waits for its end.
func (c *change) send(ctx context.Context, b *pgx.Batch) error {
	if b.Len() == 0 {
		return nil
	}
	return c.SendBatch(ctx, b).Close()
}

// change runs do in a transaction that changes the namespace, which it makes if need be: all of it is committed, or nothing. do may run more
// than once, so that it must not change what it did not make. Where the connection breaks while it commits the change is either made or not. When it returns, the watchers of this
// replica have seen it, unless the feed is held up.
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

// repeat runs a change that may be made twice: it is also tried again where a broken connection leaves open whether it was made.
func (n *Namespace) repeat(ctx context.Context, do func(ctx context.Context, c *change) error) error {
	return n.store.try(ctx, func(ctx context.Context) error { return n.change(ctx, do) }, isAway)
}

// transact runs do in a transaction. It tries again where others were in the way, and, until it begins to commit, while the database is away.
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

// once runs do in one transaction; sent reports whether its commit was sent.
func (s *Store) once(ctx context.Context, do func(context.Context, pgx.Tx) error) (sent bool, err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback(context.WithoutCancel(ctx)) // what began nothing, or is over, has nothing to roll back
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

// read runs a query that changes nothing, again while the database is away.
func (s *Store) read(ctx context.Context, do func(ctx context.Context) error) error {
	if err := s.closing(); err != nil {
		return err
	}
	return s.try(ctx, do, isAway)
}

// try runs do, and again as long as again says so of its error. Where the database has been away for goneAfter, that is the end, except for calls under way: they
// wait for as long as commits do.
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

// isAway reports whether the error says that the database is away, as a try found it or as the store knows.
func isAway(err error) bool { return away(err) || errors.Is(err, store.ErrAway) }

func pace() backoff.BackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 5*time.Millisecond, 500*time.Millisecond
	return b
}

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// final returns the error of the last try, or why the caller's context ended.
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

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

// lease is a store.Lease. A random token identifies its row.
type lease struct {
	n     *Namespace
	key   string
	token int64
	ttl   time.Duration

	lost chan struct{}
	stop context.CancelFunc // ends its renewal
	once sync.Once
}

// leasePoll is the interval at which a waiting caller retries a lease that is held.
const leasePoll = 100 * time.Millisecond

// Lease implements store.Namespace.
func (n *Namespace) Lease(ctx context.Context, name string, o store.LeaseOptions) (store.Lease, error) {
	if o.TTL <= 0 {
		return nil, fmt.Errorf("a lease needs a time to live, not %s", o.TTL)
	}
	for {
		l, err := n.take(ctx, name, o)
		if !errors.Is(err, store.ErrInUse) || !o.Wait {
			if err != nil {
				return nil, err
			}
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(leasePoll):
		}
	}
}

// take takes the lease if it is free. Otherwise it returns store.ErrInUse.
func (n *Namespace) take(ctx context.Context, name string, o store.LeaseOptions) (*lease, error) {
	l := &lease{n: n, key: key(name), token: newVersion(), ttl: o.TTL, lost: make(chan struct{})}
	began := time.Now()
	if err := n.repeat(ctx, func(ctx context.Context, c *change) error {
		// The own token can be in the row already, if the answer to an earlier attempt was lost.
		tag, err := c.Exec(ctx, `INSERT INTO leases AS l (ns, key, token, holder, expires_at) VALUES ($1, $2, $3, $4, clock_timestamp() + $5 * interval '1 microsecond')
			ON CONFLICT (ns, key) DO UPDATE SET token = excluded.token, holder = excluded.holder, expires_at = excluded.expires_at WHERE l.expires_at <= clock_timestamp() OR l.token = excluded.token`,
			c.ns, l.key, l.token, key(o.Holder), o.TTL.Microseconds())
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrInUse
		}
		return err
	}); err != nil {
		return nil, err
	}
	// The lease outlives ctx, which is only for taking it.
	renewals, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	n.store.mu.Lock()
	defer n.store.mu.Unlock()
	if n.store.closed {
		stop()
		return nil, errClosed
	}
	n.store.running.Go(func() { l.renew(renewals, began) })
	return l, nil
}

// renew renews the lease every third of its TTL until ctx or the store ends, or until renewal has failed for the whole
// TTL. held is the process's time from just before the last successful renewal. Thus the lease counts as lost here no
// later than it expires in the database.
func (l *lease) renew(ctx context.Context, held time.Time) {
	tick := time.NewTicker(max(l.ttl/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.n.store.background.Done():
			close(l.lost)
			return
		case <-tick.C:
		}
		began := time.Now()
		err := l.extend(ctx, held)
		switch {
		case err == nil:
			held = began
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrNotFound), time.Since(held) >= l.ttl:
			l.n.store.commits.leasesLost.Add(1)
			close(l.lost)
			return
		}
	}
}

// extend renews the lease once, at most until it would have expired. store.ErrNotFound means that it is lost.
func (l *lease) extend(ctx context.Context, held time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, held.Add(l.ttl))
	defer cancel()
	var one int
	err := l.n.store.pool.QueryRow(ctx,
		`UPDATE leases SET expires_at = clock_timestamp() + $4 * interval '1 microsecond'
		WHERE ns = $1 AND key = $2 AND token = $3 AND expires_at > clock_timestamp() RETURNING 1`, l.n.id.Load(), l.key, l.token, l.ttl.Microseconds()).Scan(&one)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// Lost implements store.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Release implements store.Lease. If the database is away, the lease expires on its own.
func (l *lease) Release() {
	l.once.Do(func() {
		l.stop()
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		defer cancel()
		_, _ = l.n.store.pool.Exec(ctx, "DELETE FROM leases WHERE ns = $1 AND key = $2 AND token = $3", l.n.id.Load(),
			l.key, l.token)
	})
}

// PutCandidate implements store.Namespace.
func (n *Namespace) PutCandidate(ctx context.Context, name string, value []byte, life time.Duration) error {
	return n.repeat(ctx, func(ctx context.Context, c *change) error {
		if value == nil {
			value = []byte{}
		}
		_, err := c.Exec(ctx, `INSERT INTO candidates (ns, key, value, expires_at) VALUES ($1, $2, $3, clock_timestamp() + $4 * interval '1 microsecond')
			ON CONFLICT (ns, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`, c.ns, key(name), value, life.Microseconds())
		c.Changed(store.Change{Kind: store.ChangedCandidate, Name: name})
		return err
	})
}

// Candidate implements store.Namespace.
func (n *Namespace) Candidate(ctx context.Context, name string) (value []byte, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		return n.store.pool.QueryRow(ctx,
			"SELECT value FROM candidates WHERE ns = $1 AND key = $2 AND expires_at > clock_timestamp()", ns,
			key(name)).Scan(&value)
	})
	return value, err
}

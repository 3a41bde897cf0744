package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	pingEvery    = time.Second
	pingTimeout  = 2 * time.Second
	statsTimeout = 2 * time.Second
	// goneAfter is how long the database may be away before pending work is given up and new work is rejected at once.
	goneAfter = 3 * time.Second
)

// health records whether the last attempt to reach the database succeeded.
type health struct {
	mu    sync.Mutex
	err   error              // guarded by mu, as is everything below
	since time.Time          // time of the first failure
	there context.Context    // ends once the database has been away for goneAfter
	gone  context.CancelFunc // ends there
}

// get returns the error of the last attempt, or nil.
func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// set records the result of an attempt. A closed store stays closed.
func (h *health) set(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(h.err, errClosed) {
		return
	}
	if h.err == nil {
		h.since = time.Now()
	}
	h.err = err
	if err != nil && h.gone != nil && time.Since(h.since) >= goneAfter {
		h.gone()
	} else if err == nil && h.there != nil && h.there.Err() != nil {
		h.there = nil // the next outage gets a new one
	}
}

// while returns a context that ends with ctx, or once the database has been away for goneAfter. Without that limit, a
// query on a silent connection would wait for minutes. It returns an error if the database has been away for that long
// already. The caller must call end when the work is done.
func (h *health) while(ctx context.Context) (_ context.Context, end func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.there == nil {
		h.there, h.gone = context.WithCancel(context.Background())
	}
	if h.err != nil && h.there.Err() != nil {
		return nil, nil, h.err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.there, func() { cancel(store.ErrAway) })
	return ctx, func() {
		stop()
		cancel(nil)
	}, nil
}

// away records that the database could not be reached.
func (h *health) away(err error) { h.set(unavailable(err)) }

// counted are counters since the store was opened.
type counted struct {
	calls, transactions atomic.Int64
	known               atomic.Int64 // transactions without reads
	groups, took        atomic.Int64 // transactions that committed calls, and their total duration in nanoseconds
	leasesLost          atomic.Int64
}

// every calls do at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// ping checks whether the database accepts writes.
func (s *Store) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	var standby bool
	err := s.pool.QueryRow(ctx, "SELECT pg_is_in_recovery()").Scan(&standby)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", store.ErrAway, err)
	case standby:
		err = fmt.Errorf("%w: it is a standby", store.ErrAway)
	}
	s.health.set(err)
}

// away reports whether the error means that the database cannot be reached now, or has no primary. The operation may be
// retried. If a commit was sent, it is unknown whether it succeeded.
func away(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 {
		switch refused.Code[:2] {
		case "08", "53", "57", "58": // connection, resources, shutdown, I/O error of the server
			return refused.Code != codeCanceled
		}
		return refused.Code == codeReadOnly
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// unavailable wraps an error in store.ErrAway if it means that the database is away.
func unavailable(err error) error {
	if away(err) && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("%w: %w", store.ErrAway, err)
	}
	return err
}

// Error codes of PostgreSQL.
const (
	codeCanceled  = "57014"
	codeReadOnly  = "25006" // a standby, or a primary that was demoted
	codeUnique    = "23505"
	codeSerialize = "40001"
	codeDeadlock  = "40P01"
	codeIdle      = "25P03" // idle_in_transaction_session_timeout expired
	codeLocked    = "55P03"
)

// contended reports whether the error is a conflict with another transaction, so a retry may succeed.
func contended(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case codeUnique, codeSerialize, codeDeadlock, codeIdle, codeLocked:
		return true
	}
	return false
}

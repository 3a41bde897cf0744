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
	// goneAfter is how long the database may be away before what waits for it is given up, and what comes is refused at once.
	goneAfter = 3 * time.Second
)

// health is whether the database could be written to when it was last tried.
type health struct {
	mu    sync.Mutex
	err   error              // guarded by mu, as all below
	since time.Time          // when err was first noted
	there context.Context    // ends when the database has been away for goneAfter
	gone  context.CancelFunc // of there
}

func (h *health) get() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// set notes what a try came to. A closed store stays closed.
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
		h.there = nil // of the next outage
	}
}

// while returns a context that ends with ctx, or when the database has been away for goneAfter: without an end of its own, a query whose
// connection is silent would wait for minutes. The error says that it is away already. end is called when the work is done.
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

// away notes that the database could not be reached.
func (h *health) away(err error) { h.set(unavailable(err)) }

// counted are figures since the store was opened.
type counted struct {
	calls, transactions atomic.Int64
	known               atomic.Int64 // transactions that asked for nothing
	groups, took        atomic.Int64 // transactions that committed calls, and how long they took, in nanoseconds
	leasesLost          atomic.Int64
}

// every runs do at the end of each interval until ctx ends.
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

// ping asks the database whether it takes writes.
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

// away reports whether the error says that the database cannot be reached now, or has no primary: it may be tried again. Where a commit had
// been sent nobody knows whether it was done.
func away(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) == 5 {
		switch refused.Code[:2] {
		case "08", "53", "57", "58": // connection, resources, shutdown, I/O of the server
			return refused.Code != codeCanceled
		}
		return refused.Code == codeReadOnly
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// unavailable returns the error as callers get it: store.ErrAway where the database is away.
func unavailable(err error) error {
	if away(err) && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("%w: %w", store.ErrAway, err)
	}
	return err
}

// Codes of PostgreSQL.
const (
	codeCanceled  = "57014"
	codeReadOnly  = "25006" // a standby, or a primary that was demoted
	codeUnique    = "23505"
	codeSerialize = "40001"
	codeDeadlock  = "40P01"
	codeIdle      = "25P03" // the transaction did nothing for longer than it may
	codeLocked    = "55P03"
)

// contended reports whether another transaction was in the way, so that the same may succeed when it is tried again.
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

package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/bell"
	"github.com/recurgentd/recurgentd/internal/cache"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Store is a store.Store over one database.
type Store struct {
	o    Options
	pool *pgxpool.Pool

	health    health
	pins      pins
	committer *committer
	hints     chan struct{} // has room for one: the feed has something new

	keptArtifacts cache.Cache[rowKey, *keptArtifact]
	keptEvidence  cache.Cache[rowKey, *keptEvidence]
	keptSessions  cache.Cache[rowKey, keptSession]
	keptTools     cache.Cache[roleKey, *agent.Tool]
	keptPolicies  cache.Cache[int64, keptPolicy]
	keptStored    cache.Cache[rowKey, keptStored] // by namespace and owner
	folded        atomic.Int64                    // when this replica last had what is stored folded, in nanoseconds

	bell     bell.Bell // the feed may have something new
	urgent   bell.Bell // and somebody waits for the watchers to report it
	progress bell.Bell // a watcher has reported something
	tail     tail

	background context.Context    // of what runs beside the calls
	stop       context.CancelFunc // of these
	running    sync.WaitGroup     // of these
	commits    counted
	gauges     gauges

	settling settling // see settle

	mu       sync.Mutex
	spaces   map[agent.Namespace]*Namespace // guarded by mu, as all below
	watchers map[*watcher]bool
	closed   bool
}

// keptRows bounds how many rows of each kind a replica keeps in memory.
const keptRows = 4096

// Open opens the database and makes its tables, or brings them up to date, unless Existing is set. ctx bounds the opening only.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	config, err := o.pool()
	if err != nil {
		return nil, err
	}
	direct, err := o.direct()
	if err != nil {
		return nil, err
	}
	if o.Existing {
		err = o.made(ctx)
	} else if err = migrate(ctx, direct); err != nil {
		err = fmt.Errorf("prepare the database: %w", err)
	}
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, pool: pool, spaces: map[agent.Namespace]*Namespace{}, watchers: map[*watcher]bool{},
		hints: make(chan struct{}, 1)}
	s.committer = newCommitter(s)
	s.keptArtifacts, s.keptEvidence = cache.New[rowKey, *keptArtifact](keptRows),
		cache.New[rowKey, *keptEvidence](keptRows)
	s.keptSessions, s.keptTools = cache.New[rowKey, keptSession](keptRows), cache.New[roleKey, *agent.Tool](keptRows)
	s.keptPolicies, s.keptStored = cache.New[int64, keptPolicy](keptRows), cache.New[rowKey, keptStored](keptRows)
	err = s.check(ctx)
	if err == nil && !o.Existing {
		err = s.afterRestore(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.background, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { every(s.background, pingEvery, s.ping) })
	s.running.Go(func() { s.committer.run(s.background) })
	s.running.Go(func() { s.notify(s.background) })
	s.running.Go(func() { s.listen(s.background, direct) })
	s.running.Go(func() { s.runTail(s.background) })
	s.running.Go(func() { every(s.background, pinEvery, s.renewPins) })
	s.running.Go(func() { s.sweepNowAndThen(s.background) })
	return s, nil
}

// check refuses a database that cannot hold what is stored.
func (s *Store) check(ctx context.Context) error {
	var encoding string
	if err := s.pool.QueryRow(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s, not UTF8", encoding)
	}
	return nil
}

// Close is part of store.Store. What was acknowledged is durable already.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	s.committer.close()
	s.health.set(errClosed)
	s.stop()
	s.running.Wait()
	s.pool.Close()
	return nil
}

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrReadOnly)

// Ready is part of store.Store: nil, or why the database could not be reached when it was last tried.
func (s *Store) Ready() error { return s.health.get() }

// Settled is part of store.Store: readers see what is committed only.
func (s *Store) Settled() error { return nil }

// closing returns errClosed once the store is closed.
func (s *Store) closing() error {
	if err := s.health.get(); errors.Is(err, errClosed) {
		return err
	}
	return nil
}

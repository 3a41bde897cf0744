package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/bell"
	"github.com/recurgentd/recurgentd/internal/cache"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Store is a store.Store in one database. It is safe for concurrent use.
type Store struct {
	o    Options
	pool *pgxpool.Pool

	health    health
	pins      pins
	committer *committer
	hints     chan struct{} // has room for one; the feed has a new change

	keptArtifacts cache.Cache[rowKey, *keptArtifact]
	keptEvidence  cache.Cache[rowKey, *keptEvidence]
	keptSessions  cache.Cache[rowKey, keptSession]
	keptTools     cache.Cache[roleKey, *agent.Tool]
	keptPolicies  cache.Cache[int64, keptPolicy]
	keptStored    cache.Cache[rowKey, keptStored] // by namespace and owner
	folded        atomic.Int64                    // last time this replica had the storage sums folded, in nanoseconds

	bell     bell.Bell // rings when the feed may have a new change
	urgent   bell.Bell // rings when somebody waits for the watchers to report it
	progress bell.Bell // rings when a watcher has reported a change
	tail     tail

	background context.Context    // context of the goroutines that run outside of calls
	stop       context.CancelFunc // ends background
	running    sync.WaitGroup     // the goroutines of background
	commits    counted
	gauges     gauges

	settling settling // see settle

	mu       sync.Mutex
	spaces   map[agent.Namespace]*Namespace // guarded by mu, as is everything below
	watchers map[*watcher]bool
	closed   bool
}

// keptRows is the maximum number of rows of each kind that a replica caches.
const keptRows = 4096

// Open opens the database. Unless o.Existing is set, it creates the tables or migrates them to the current version. ctx
// covers only Open itself. The caller closes the Store.
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
	// Migrations bypass the pooler: they hold a session lock, which transaction mode does not support.
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

// check returns an error if the database cannot hold the data.
func (s *Store) check(ctx context.Context) error {
	var encoding string
	if err := s.pool.QueryRow(ctx, "SELECT current_setting('server_encoding')").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s; create a database with the encoding UTF8", encoding)
	}
	return nil
}

// Close implements store.Store. Acknowledged commits are durable already, so it does not use the context.
func (s *Store) Close(context.Context) error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return nil
	}
	// Calls already in the queue are still committed: run commits them before it returns.
	s.committer.close()
	s.health.set(errClosed)
	s.stop()
	s.running.Wait()
	s.pool.Close()
	return nil
}

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrReadOnly)

// Ready implements store.Store. The error is the reason why the last attempt did not reach the database.
func (s *Store) Ready() error { return s.health.get() }

// Settled implements store.Store. Readers only see committed data, so there is nothing to wait for.
func (s *Store) Settled() error { return nil }

// closing returns errClosed if the store is closed.
func (s *Store) closing() error {
	if err := s.health.get(); errors.Is(err, errClosed) {
		return err
	}
	return nil
}

// Queries for a database that was restored from a dump. Its transaction ids start again, so stored places of calls and
// changes may be ahead of new ones.
const (
	// raiseEra moves the places of later calls past those of the dump.
	raiseEra = `UPDATE era SET added = newest.place - pg_current_xact_id()::text::int8 + 1 FROM (SELECT max(c.n) >> 20 AS place
			FROM namespaces s, LATERAL (SELECT n FROM calls WHERE ns = s.id ORDER BY n DESC LIMIT 1) AS c) AS newest
		WHERE newest.place >= pg_current_xact_id()::text::int8 + added`
	// dropAhead deletes the changes of the dump, because no reader of them is left.
	dropAhead = "DELETE FROM feed WHERE xid > pg_current_xact_id()"
	// lowerFloor lets readers start with the new transaction ids. Old cursors stay invalid.
	lowerFloor = "UPDATE feed_floor SET xid = pg_current_xact_id(), n = 0 WHERE xid > pg_current_xact_id()"
)

// afterRestore prepares a database that was restored from a dump. It does not change other databases.
func (s *Store) afterRestore(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("SELECT added FROM era FOR UPDATE") // serializes replicas
		b.Queue(raiseEra)
		b.Queue(dropAhead)
		b.Queue(lowerFloor)
		return tx.SendBatch(ctx, b).Close()
	})
}

//go:embed migrations/*.sql
var migrations embed.FS

// written returns the migrations written in Go.
func written() []*goose.Migration {
	return []*goose.Migration{goose.NewGoMigration(8, &goose.GoFunc{RunTx: countTools}, nil)}
}

// migrate brings the tables to the version that this program knows. A lock serializes replicas. It returns an error if
// the tables have a newer version.
func migrate(ctx context.Context, config *pgx.ConnConfig) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer db.Close() // its connection is done
	// Another replica may be migrating: wait for up to two minutes.
	const second, tries = 1, 120
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(second, tries))
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker),
		goose.WithTableName("schema_version"), goose.WithGoMigrations(written()...))
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("the database's tables have schema version %d, but this recurgentd knows versions up to "+
			"%d: use the newer one", have, want)
	}
	if have == want {
		return nil
	}
	_, err = p.Up(ctx)
	return err
}

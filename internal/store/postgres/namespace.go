package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Namespace is the handle of one namespace in a Store. It is safe for concurrent use.
type Namespace struct {
	store *Store
	name  agent.Namespace
	id    atomic.Int64 // id of its row; none until it has been found or created
	gone  atomic.Bool  // it was erased
	freed atomic.Int64 // number of deletions by this replica
}

var errErased = fmt.Errorf("%w: the namespace was deleted", store.ErrGone)

// Space returns the handle of the namespace. It does not query the database.
func (s *Store) Space(name agent.Namespace) (*Namespace, error) {
	if err := name.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.spaces[name]
	if n == nil {
		n = &Namespace{store: s, name: name}
		s.spaces[name] = n
	}
	return n, nil
}

// dropSpace drops the handle of an erased namespace. Whoever holds it finds nothing and cannot write; a new call of
// Space returns a new handle.
func (s *Store) dropSpace(n *Namespace) {
	n.gone.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces[n.name] == n {
		delete(s.spaces, n.name)
	}
}

// forget drops the handle of the namespace if its row no longer exists, because another replica erased it or it was
// lost with a primary.
func (s *Store) forget(ctx context.Context, name agent.Namespace) error {
	s.mu.Lock()
	n := s.spaces[name]
	s.mu.Unlock()
	if n == nil || n.id.Load() == none {
		return nil
	}
	var there bool
	err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM namespaces WHERE id = $1)", n.id.Load()).Scan(&there)
	if err == nil && !there {
		s.dropSpace(n)
	}
	return err
}

// none is not the id of any namespace. A read with it finds nothing.
const none int64 = 0

// freshSpace inserts a namespace with a random id that fits an advisory lock. Ids must not come from a sequence: a
// sequence repeats numbers that were lost with a primary, and whoever still had such an id would then be in another
// namespace.
const freshSpace = "INSERT INTO namespaces (id, name, created_at) OVERRIDING SYSTEM VALUE VALUES (1 + floor(random() * 2147483646)::int8, $1, $2)"

// key returns the namespace's id for reading, or none if the namespace does not exist.
func (n *Namespace) key(ctx context.Context) (int64, error) {
	if id := n.id.Load(); id != none || n.gone.Load() {
		return id, nil
	}
	var id int64
	err := n.store.pool.QueryRow(ctx, "SELECT id FROM namespaces WHERE name = $1", string(n.name)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return none, nil
	}
	if err == nil {
		n.id.CompareAndSwap(none, id)
	}
	return id, err
}

// read runs a read-only do with the namespace's id.
func (n *Namespace) read(ctx context.Context, do func(ctx context.Context, ns int64) error) error {
	if n.gone.Load() {
		return errErased
	}
	return n.store.read(ctx, func(ctx context.Context) error {
		ns, err := n.key(ctx)
		if err != nil {
			return err
		}
		return do(ctx, ns)
	})
}

// make creates the namespace's row if it does not exist, and returns its id.
func (n *Namespace) make(ctx context.Context, tx pgx.Tx) (int64, error) {
	if n.gone.Load() {
		return none, errErased
	}
	if id := n.id.Load(); id != none {
		return id, nil
	}
	var id int64
	err := tx.QueryRow(ctx, "SELECT id FROM namespaces WHERE name = $1", string(n.name)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		err = tx.QueryRow(ctx, freshSpace+" RETURNING id", string(n.name), nil).Scan(&id)
	}
	return id, err
}

// holdSpaces keeps namespaces from being erased until the transaction ends. It takes shared advisory locks, because a
// lock of the row is a write. heldSpaces then lists those that exist; it must be a separate statement to see the state
// after the lock.
const (
	holdSpaces = "SELECT pg_advisory_xact_lock_shared(" + spaceLocks + ", id::int4) FROM unnest($1::int8[]) AS id"
	heldSpaces = "SELECT id FROM namespaces WHERE id = ANY($1::int8[])"
	dueSpaces  = "UPDATE namespaces SET due = NULL WHERE id = ANY($1::int8[]) AND due IS NOT NULL"

	spaceLocks = "1380271956" // first key of the advisory locks of namespaces
)

// hold starts a change: it keeps the namespace from being erased until the transaction ends, and returns its id. It
// creates the namespace if needed.
func (n *Namespace) hold(ctx context.Context, tx pgx.Tx) (int64, error) {
	id, err := n.make(ctx, tx)
	if err != nil {
		return none, err
	}
	var found int64
	b := &pgx.Batch{}
	b.Queue(holdSpaces, []int64{id})
	b.Queue(heldSpaces, []int64{id}).QueryRow(func(row pgx.Row) error { return row.Scan(&found) })
	b.Queue(dueSpaces, []int64{id})
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		if errors.Is(err, pgx.ErrNoRows) {
			n.store.dropSpace(n)
			return none, errErased
		}
		return none, err
	}
	return id, nil
}

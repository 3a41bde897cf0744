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

// Namespace is what one namespace holds, as one store shows it.
type Namespace struct {
	store *Store
	name  agent.Namespace
	id    atomic.Int64 // of its row; 0: it was not there when it was last looked for
	gone  atomic.Bool  // it was erased
	freed atomic.Int64 // deletions by this replica
}

var errErased = fmt.Errorf("%w: the namespace was deleted", store.ErrGone)

// Space returns the handle of the namespace.
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

// dropSpace forgets a namespace that was erased: who holds it finds nothing and can write nothing, and who asks for the name gets a new one.
func (s *Store) dropSpace(n *Namespace) {
	n.gone.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spaces[n.name] == n {
		delete(s.spaces, n.name)
	}
}

// forget drops the namespace of that name if it is not there: another replica has erased it, or it was lost with a primary.
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

// none is the id of no namespace: whoever reads with it finds nothing.
const none int64 = 0

// freshSpace inserts a namespace with a random id, which its advisory lock has to hold: a sequence gives numbers again that were lost with a primary, and who
// still has one would be in another namespace then.
const freshSpace = "INSERT INTO namespaces (id, name, created_at) OVERRIDING SYSTEM VALUE VALUES (1 + floor(random() * 2147483646)::int8, $1, $2)"

// key returns the namespace's id for reading, none where there is no such namespace.
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

// read runs queries that change nothing with the namespace's id.
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

// make makes the namespace's row, if there is none, and returns its id.
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

// holdSpaces has the transaction keep namespaces from being erased: shared advisory locks, since a lock of the row is a write.
// heldSpaces then names those that are there, which only a statement of its own sees.
const (
	holdSpaces = "SELECT pg_advisory_xact_lock_shared(" + spaceLocks + ", id::int4) FROM unnest($1::int8[]) AS id"
	heldSpaces = "SELECT id FROM namespaces WHERE id = ANY($1::int8[])"
	dueSpaces  = "UPDATE namespaces SET due = NULL WHERE id = ANY($1::int8[]) AND due IS NOT NULL"

	spaceLocks = "1380271956" // the first key of our advisory locks of namespaces
)

// hold begins a change: it keeps the namespace from being erased until the transaction ends, and returns its id. One that the change makes is there
// once the transaction is committed.
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

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// CreateSession implements store.Namespace.
func (n *Namespace) CreateSession(ctx context.Context, s agent.Session,
	sessionContext map[string]json.RawMessage) error {
	_, err := n.create(ctx, s, sessionContext, nil)
	return err
}

// CreateOwned implements store.Namespace.
func (n *Namespace) CreateOwned(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
	replica string) (store.Ownership, error) {
	return n.create(ctx, s, sessionContext, &replica)
}

// create creates a session. The replica owns it, unless replica is nil.
func (n *Namespace) create(ctx context.Context, s agent.Session, sessionContext map[string]json.RawMessage,
	replica *string) (o store.Ownership, err error) {
	updated := s.UpdatedAt
	s.HistorySize, s.Revision, s.UpdatedAt = 0, 0, time.Time{} // these are columns of their own
	doc, err := json.Marshal(&s)
	if err != nil {
		return o, err
	}
	values := agent.ContextChange{Set: sessionContext}
	if err := valid(&values); err != nil {
		return o, err
	}
	err = n.change(ctx, func(ctx context.Context, c *change) error {
		var by *string
		if replica != nil {
			self, alive, err := readReplica(ctx, c, key(*replica))
			if err != nil {
				return err
			}
			if !alive {
				return store.ErrFenced
			}
			o.Replica, o.Address, by = self.ID, self.Address, new(key(*replica))
		}
		err := c.QueryRow(ctx, `INSERT INTO sessions (ns, id, owner, ephemeral, updated_at, doc, replica, epoch)
			VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $7::text IS NULL THEN 0 ELSE `+firstEpoch+` END) ON CONFLICT DO NOTHING RETURNING epoch`,
			c.ns, key(s.ID), key(owner(&s)), ids.Ephemeral(s.ID), updated, doc, by).Scan(&o.Epoch)
		if errors.Is(err, pgx.ErrNoRows) {
			return store.ErrExists
		}
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		queueContext(b, c.ns, s.ID, &values)
		return c.send(ctx, b)
	})
	if err != nil {
		return store.Ownership{}, err
	}
	// The session's first call can then be committed from the caches.
	n.store.keptSessions.Set(rowKey{ns: n.id.Load(), a: key(s.ID)}, keptSession{epoch: o.Epoch, owner: key(owner(&s))})
	return o, nil
}

// owner returns the session's owner. Calls of the session without an owner belong to the same one.
func owner(s *agent.Session) string {
	if s.Owner == "" {
		return agent.LocalOwner
	}
	return s.Owner
}

const sessionColumns = "history_size, revision, updated_at, doc"

// scanSession reads sessionColumns.
func scanSession(row pgx.Row) (s agent.Session, err error) {
	var doc []byte
	var size int
	var revision int64
	var updated time.Time
	if err := row.Scan(&size, &revision, &updated, &doc); err != nil {
		return s, err
	}
	if err := json.Unmarshal(doc, &s); err != nil {
		return s, fmt.Errorf("stored session: %w", err)
	}
	s.HistorySize, s.Revision, s.UpdatedAt = size, revision, updated.UTC()
	return s, nil
}

// Session implements store.Namespace.
func (n *Namespace) Session(ctx context.Context, id string) (s agent.Session, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) (err error) {
		s, err = scanSession(n.store.pool.QueryRow(ctx, "SELECT "+sessionColumns+
			" FROM sessions WHERE ns = $1 AND id = $2", ns, key(id)))
		return err
	})
	return s, err
}

// ListSessions implements store.Namespace.
func (n *Namespace) ListSessions(ctx context.Context, after string, limit int) (out []agent.Session, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx, "SELECT "+sessionColumns+
			" FROM sessions WHERE ns = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3", ns, key(after), limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (agent.Session,
			error) {
			return scanSession(row)
		})
		return err
	})
	return out, err
}

// Context implements store.Namespace.
func (n *Namespace) Context(ctx context.Context, sessionID string) (values map[string]json.RawMessage, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		values, err = readContext(ctx, n.store.pool, ns, sessionID)
		return err
	})
	return values, err
}

// ChangeContext implements store.Namespace.
func (n *Namespace) ChangeContext(ctx context.Context, sessionID string, fence int64, x agent.ContextChange,
	audit *agent.AuditEntry) (values map[string]json.RawMessage, err error) {
	if err := valid(&x); err != nil {
		return nil, err
	}
	err = n.change(ctx, func(ctx context.Context, c *change) error {
		var epoch int64
		err := c.QueryRow(ctx, "UPDATE sessions SET updated_at = $3, revision = revision + 1 WHERE ns = $1 AND id = $2 RETURNING epoch", c.ns, key(sessionID), n.store.o.Now()).Scan(&epoch)
		if err != nil {
			return err
		}
		if fence != 0 && fence != epoch {
			return store.ErrFenced
		}
		b := &pgx.Batch{}
		queueContext(b, c.ns, sessionID, &x)
		if err := c.send(ctx, b); err != nil {
			return err
		}
		if values, err = readContext(ctx, c, c.ns, sessionID); err != nil {
			return err
		}
		return c.audit(ctx, audit)
	})
	return values, n.freeing(err)
}

// querier is a connection or a pool.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readContext reads a session's context in one statement, for a consistent snapshot.
func readContext(ctx context.Context, q querier, ns int64, session string) (map[string]json.RawMessage, error) {
	rows, err := q.Query(ctx,
		`SELECT c.name, c.value FROM sessions s LEFT JOIN session_context c ON c.ns = s.ns AND c.session = s.id
		WHERE s.ns = $1 AND s.id = $2`, ns, key(session))
	if err != nil {
		return nil, err
	}
	values, found := map[string]json.RawMessage{}, false
	var name, value []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		found = true
		if value != nil {
			values[string(name)] = value
			value = nil
		}
		return nil
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return values, err
}

// queueContext queues a change of a session's context. The transaction must have locked the session.
func queueContext(b *pgx.Batch, ns int64, session string, c *agent.ContextChange) {
	if c.Empty() {
		return
	}
	var names, values [][]byte
	var hashes []string
	for name, value := range c.Set {
		hashes, names, values = append(hashes, key(name)), append(names, []byte(name)), append(values, value)
	}
	if len(hashes) > 0 {
		b.Queue(`INSERT INTO session_context (ns, session, hash, name, value) SELECT $1, $2, * FROM unnest($3::text[], $4::bytea[], $5::bytea[])
			ON CONFLICT (ns, session, hash) DO UPDATE SET value = excluded.value`, ns, key(session), hashes, names, values)
	}
	if len(c.Delete) > 0 {
		b.Queue("DELETE FROM session_context WHERE ns = $1 AND session = $2 AND hash = ANY($3::text[])", ns,
			key(session), keys(c.Delete))
	}
}

// valid returns an error if a context change contains invalid JSON.
func valid(c *agent.ContextChange) error {
	for name, value := range c.Set {
		if !json.Valid(value) {
			return fmt.Errorf("context key %s is not JSON", name)
		}
	}
	return nil
}

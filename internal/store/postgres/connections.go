package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

func scanConnection(row pgx.Row) (c agent.Connection, err error) {
	var doc []byte
	if err := row.Scan(&doc); err != nil {
		return c, err
	}
	if err := json.Unmarshal(doc, &c); err != nil {
		return c, fmt.Errorf("stored connection: %w", err)
	}
	return c, nil
}

// StoredConnections returns the connections of the default namespace without opening a store and without changes to the
// database. It returns none if the database has no tables yet.
func StoredConnections(ctx context.Context, o Options) (out []agent.Connection, err error) {
	conn, err := o.look(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // it only reads, so the error does not matter
	var made bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('connections') IS NOT NULL").Scan(&made); err != nil || !made {
		return nil, unavailable(err)
	}
	rows, err := conn.Query(ctx,
		"SELECT c.doc FROM connections c JOIN namespaces n ON n.id = c.ns WHERE n.name = $1 ORDER BY c.name",
		string(agent.DefaultNamespace))
	if err != nil {
		return nil, unavailable(err)
	}
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (agent.Connection,
		error) {
		return scanConnection(row)
	})
	return out, unavailable(err)
}

// ListConnections implements store.Namespace.
func (n *Namespace) ListConnections(ctx context.Context) (out []agent.Connection, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx, "SELECT doc FROM connections WHERE ns = $1 ORDER BY name", ns)
		if err != nil {
			return err
		}
		out, err = pgx.AppendRows([]agent.Connection(nil), rows,
			func(row pgx.CollectableRow) (agent.Connection, error) { return scanConnection(row) })
		return err
	})
	return out, err
}

// connection reads a connection for a change. It locks the namespace's row, which serializes changes of connections:
// PutConnection counts them.
func (c *change) connection(ctx context.Context, name string) (old agent.Connection, found bool, err error) {
	if _, err := c.Exec(ctx, "SELECT 1 FROM namespaces WHERE id = $1 FOR NO KEY UPDATE", c.ns); err != nil {
		return old, false, err
	}
	old, err = scanConnection(c.QueryRow(ctx, "SELECT doc FROM connections WHERE ns = $1 AND name = $2", c.ns,
		key(name)))
	if errors.Is(err, pgx.ErrNoRows) {
		return agent.Connection{}, false, nil
	}
	return old, err == nil, err
}

// PutConnection implements store.Namespace.
func (n *Namespace) PutConnection(ctx context.Context, x agent.Connection, revision int64,
	audit *agent.AuditEntry) (next agent.Connection, err error) {
	err = n.change(ctx, func(ctx context.Context, c *change) error {
		old, found, err := c.connection(ctx, x.Name)
		if err != nil {
			return err
		}
		if !found {
			var count int
			if err := c.QueryRow(ctx, "SELECT count(*) FROM connections WHERE ns = $1", c.ns).Scan(&count); err != nil {
				return err
			}
			if count >= store.MaxConnections {
				return store.ErrTooMany
			}
		}
		if next, err = store.ReplaceConnection(old, x, revision, n.store.o.Now()); err != nil {
			return err
		}
		doc, err := json.Marshal(&next)
		if err != nil {
			return err
		}
		if _, err := c.Exec(ctx, `INSERT INTO connections (ns, name, revision, doc) VALUES ($1, $2, $3, $4)
			ON CONFLICT (ns, name) DO UPDATE SET revision = excluded.revision, doc = excluded.doc`, c.ns, key(x.Name), next.Revision, doc); err != nil {
			return err
		}
		c.Changed(store.Change{Kind: "connection", Name: x.Name, Revision: next.Revision})
		return c.audit(ctx, audit)
	})
	if err != nil {
		return agent.Connection{}, err
	}
	return next, nil
}

// DeleteConnection implements store.Namespace.
func (n *Namespace) DeleteConnection(ctx context.Context, name string, revision int64, audit *agent.AuditEntry) error {
	return n.change(ctx, func(ctx context.Context, c *change) error {
		old, found, err := c.connection(ctx, name)
		switch {
		case err != nil:
			return err
		case !found:
			return store.ErrNotFound
		case !store.Matches(revision, old.Revision):
			return store.ErrConflict
		}
		if _, err := c.Exec(ctx, "DELETE FROM connections WHERE ns = $1 AND name = $2", c.ns, key(name)); err != nil {
			return err
		}
		c.Changed(store.Change{Kind: "connection", Name: name})
		return c.audit(ctx, audit)
	})
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Namespace implements store.Store. It does not query the database.
func (s *Store) Namespace(name agent.Namespace) (store.Namespace, error) { return s.Space(name) }

// scanNamespace reads the columns name, created_at and due, after the columns scanned into before.
func scanNamespace(row pgx.Row, before ...any) (info store.NamespaceInfo, err error) {
	var name string
	var created, due *time.Time
	if err := row.Scan(append(before, &name, &created, &due)...); err != nil {
		return info, err
	}
	info.Name = agent.Namespace(name)
	if created != nil {
		info.CreatedAt = created.UTC()
	}
	if due != nil {
		info.Due = due.UTC()
	}
	return info, nil
}

// ListNamespaces implements store.Store.
func (s *Store) ListNamespaces(ctx context.Context, after agent.Namespace,
	limit int) (out []store.NamespaceInfo, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx,
			"SELECT name, created_at, due FROM namespaces WHERE name > $1 ORDER BY name LIMIT $2", string(after), limit)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (store.NamespaceInfo,
			error) {
			return scanNamespace(row)
		})
		return err
	})
	return out, err
}

// NamespaceInfo implements store.Store.
func (s *Store) NamespaceInfo(ctx context.Context, name agent.Namespace) (info store.NamespaceInfo, err error) {
	err = s.read(ctx, func(ctx context.Context) (err error) {
		info, err = scanNamespace(s.pool.QueryRow(ctx, "SELECT name, created_at, due FROM namespaces WHERE name = $1",
			string(name)))
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: namespace %s", store.ErrNotFound, name)
	}
	return info, err
}

// CreateNamespace implements store.Store.
func (s *Store) CreateNamespace(ctx context.Context, name agent.Namespace,
	audit *agent.AuditEntry) (info store.NamespaceInfo, err error) {
	if err := name.Validate(); err != nil {
		return info, err
	}
	trail, err := s.Space(agent.DefaultNamespace)
	if err != nil {
		return info, err
	}
	info = store.NamespaceInfo{Name: name, CreatedAt: s.o.Now().UTC().Truncate(time.Microsecond)}
	err = trail.change(ctx, func(ctx context.Context, c *change) error {
		tag, err := c.Exec(ctx, freshSpace+" ON CONFLICT (name) DO NOTHING", string(name), info.CreatedAt)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%w: namespace %s", store.ErrExists, name)
		}
		return c.audit(ctx, audit)
	})
	if err != nil {
		return store.NamespaceInfo{}, err
	}
	return info, nil
}

// spaceTables are the tables whose rows belong to a namespace, except those of file contents.
var spaceTables = []string{"sessions", "session_context", "records", "calls", "call_values", "replies", "contents",
	"patterns", "evidence", "artifacts",
	"artifact_bodies", "programs", "leases", "candidates", "tools", "ranks", "archive", "policies", "connections",
	"audit", "audit_heads", "files", "file_bytes",
	"spend_rows", "spend_open", "spend_forges", "spend_chunks", "tool_bytes", "stored_changes", "stored"}

// EraseNamespace implements store.Store. It waits for changes of the namespace in progress; later ones find it gone.
func (s *Store) EraseNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry) error {
	if name == agent.DefaultNamespace {
		return store.ErrDefault
	}
	trail, err := s.Space(agent.DefaultNamespace)
	if err != nil {
		return err
	}
	var erased *Namespace
	err = trail.change(ctx, func(ctx context.Context, c *change) error {
		var id int64
		err := c.QueryRow(ctx, "SELECT id FROM namespaces WHERE name = $1", string(name)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("%w: namespace %s", store.ErrNotFound, name)
		}
		if err != nil {
			return err
		}
		// The exclusive lock waits for all changes that hold the namespace; see holdSpaces.
		if _, err := c.Exec(ctx, "SELECT pg_advisory_xact_lock("+spaceLocks+", $1::int8::int4)", id); err != nil {
			return err
		}
		// After the commit, the name may already belong to a new namespace with a new handle.
		if erased, err = s.Space(name); err != nil {
			return err
		}
		if err := c.keepErased(ctx, id); err != nil {
			return err
		}
		b := &pgx.Batch{}
		// folded first, because its sums are subtracted from those of all namespaces
		b.Queue("SELECT fold_stored($1)", id)
		b.Queue(`UPDATE stored s SET files = s.files - n.files, contexts = s.contexts - n.contexts, histories = s.histories - n.histories,
			values = s.values - n.values, tools = s.tools - n.tools, examples = s.examples - n.examples FROM stored n WHERE (s.ns, s.owner) = (0, '') AND (n.ns, n.owner) = ($1, '')`, id)
		b.Queue("DELETE FROM namespaces WHERE id = $1", id)
		for _, table := range spaceTables {
			b.Queue("DELETE FROM "+table+" WHERE ns = $1", id)
		}
		b.Queue("WITH gone AS (DELETE FROM blobs WHERE ns = $1 RETURNING id), pinned AS (DELETE FROM pins WHERE blob IN (SELECT id FROM gone)) DELETE FROM pieces WHERE blob IN (SELECT id FROM gone)", id)
		if err := c.send(ctx, b); err != nil {
			return err
		}
		c.feed = append(c.feed, store.Change{Namespace: name, Kind: "namespace"})
		return c.audit(ctx, audit)
	})
	if err != nil {
		return err
	}
	s.dropSpace(erased)
	return nil
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Namespace = (*Namespace)(nil)
)

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Archived is part of store.Namespace.
func (n *Namespace) Archived(ctx context.Context, targets []store.Target, auditID string) error {
	return n.read(ctx, func(ctx context.Context, ns int64) error {
		roles := make([]string, len(targets))
		for i, t := range targets {
			roles[i] = t.Role
		}
		rows, err := n.store.pool.Query(ctx, "SELECT role, method FROM archive WHERE ns = $1 AND role = ANY($2) AND by = $3", ns, keys(roles), key(auditID))
		if err != nil {
			return err
		}
		has := map[[2]string]bool{} // by role and method
		var role, method string
		if _, err := pgx.ForEachRow(rows, []any{&role, &method}, func() error {
			has[[2]string{role, method}] = true
			return nil
		}); err != nil {
			return err
		}
		for _, t := range targets {
			if !has[[2]string{key(t.Role), key(t.Method)}] {
				return store.NotArchived(t)
			}
		}
		return nil
	})
}

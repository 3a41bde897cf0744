package postgres

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

// Archived implements store.Namespace.
func (n *Namespace) Archived(ctx context.Context, targets []store.Target, auditID string) error {
	return n.read(ctx, func(ctx context.Context, ns int64) error {
		roles := make([]string, len(targets))
		for i, t := range targets {
			roles[i] = t.Role
		}
		rows, err := n.store.pool.Query(ctx, "SELECT role, method, by FROM archive WHERE ns = $1 AND "+inArchive+
			" AND role = ANY($3)", ns, n.store.endedBefore(), keys(roles))
		if err != nil {
			return err
		}
		has := map[[3]string]bool{}
		var at [3]string
		if _, err := pgx.ForEachRow(rows, []any{&at[0], &at[1], &at[2]}, func() error {
			has[at] = true
			return nil
		}); err != nil {
			return err
		}
		for _, t := range targets {
			if !has[[3]string{key(t.Role), key(t.Method), key(cmp.Or(t.From, auditID))}] {
				return store.NotArchived(t)
			}
		}
		return nil
	})
}

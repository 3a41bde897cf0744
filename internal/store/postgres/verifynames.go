package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// names looks for names that are not in Unicode's normal form C. An earlier version stored names unchanged.
func (v *verifier) names(ctx context.Context) error {
	rows, err := v.Query(ctx,
		`SELECT array_agg(name ORDER BY name) FROM (SELECT ns, role AS name FROM tools UNION SELECT ns, role || '.' || method FROM artifacts) x GROUP BY ns`)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[[]string])
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	for _, names := range all {
		v.r.OtherForms = append(v.r.OtherForms, agent.OtherForms(names)...)
	}
	return nil
}

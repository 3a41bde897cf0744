package postgres

import (
	"context"
	"encoding/json"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// UseOf implements store.Namespace.
func (n *Namespace) UseOf(ctx context.Context, caps []store.Cap) (uses []store.Use, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) (err error) {
		uses, err = useOf(ctx, n.store.pool, ns, caps)
		return err
	})
	return uses, err
}

// Use and reservations, of one namespace or of all. Each is a single statement, so it sees a settlement either in both
// or in neither.
const (
	useOfOne = `SELECT false, day, role, method, owner, models FROM spend_rows WHERE ns = $1 AND day BETWEEN $2 AND $3
		UNION ALL SELECT true, 0, '', '', '', doc FROM spend_open WHERE ns = $1`
	useOfAll = `SELECT false, r.day, r.role, r.method, r.owner, r.models FROM namespaces n JOIN spend_rows r ON r.ns = n.id AND r.day BETWEEN $2 AND $3 WHERE $1::int8 IS NOT NULL
		UNION ALL SELECT false, day, '', '', '', models FROM spend_erased WHERE day BETWEEN $2 AND $3
		UNION ALL SELECT true, 0, '', '', '', doc FROM spend_open`
)

// useOf returns the use of each cap.
func useOf(ctx context.Context, q querier, ns int64, caps []store.Cap) ([]store.Use, error) {
	uses := make([]store.Use, len(caps))
	for _, part := range []struct {
		query  string
		daemon bool
	}{{useOfOne, false}, {useOfAll, true}} {
		first, last := agent.Day(math.MaxInt32), agent.Day(math.MinInt32)
		for _, c := range caps {
			if (c.Scope == store.ScopeDaemon) == part.daemon {
				first, last = min(first, c.First), max(last, c.Last)
			}
		}
		if first > last {
			continue
		}
		rows, err := q.Query(ctx, part.query, ns, int32(first), int32(last))
		if err != nil {
			return nil, err
		}
		if err := eachUse(rows, func(s *agent.Spend, u store.Use) {
			for i, c := range caps {
				if (c.Scope == store.ScopeDaemon) == part.daemon && c.Holds(s.Day, s.Role, s.Method, s.Owner) {
					uses[i].Add(u)
				}
			}
		}); err != nil {
			return nil, err
		}
	}
	return uses, nil
}

// keepErased records what a namespace about to be erased has used and reserved today, for the caps of all namespaces.
func (c *change) keepErased(ctx context.Context, ns int64) error {
	today := agent.DayOf(c.n.store.o.Now())
	uses, err := useOf(ctx, c, ns, []store.Cap{{Scope: store.ScopeNamespace, First: today, Last: today}})
	if err != nil || uses[0] == (store.Use{}) {
		return err
	}
	models, err := json.Marshal([]agent.ModelTokens{{Tokens: agent.Tokens{Prompt: uses[0].Used + uses[0].Reserved}}})
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	b.Queue("DELETE FROM spend_erased WHERE day < $1", int32(today))
	b.Queue("INSERT INTO spend_erased (day, models) VALUES ($1, $2)", int32(today), models)
	return c.send(ctx, b)
}

// eachUse calls visit for each aggregate and each reservation.
func eachUse(rows pgx.Rows, visit func(*agent.Spend, store.Use)) error {
	var open bool
	var day int32
	var role, method, owner, doc []byte
	_, err := pgx.ForEachRow(rows, []any{&open, &day, &role, &method, &owner, &doc}, func() error {
		var s agent.Spend
		if open {
			err := json.Unmarshal(doc, &s)
			visit(&s, store.Use{Reserved: s.Sum()})
			return err
		}
		s = agent.Spend{Day: agent.Day(day), Role: string(role), Method: string(method), Owner: string(owner)}
		var models []agent.ModelTokens
		err := json.Unmarshal(doc, &models)
		var u store.Use
		for _, m := range models {
			u.Used += m.Sum()
		}
		visit(&s, u)
		return err
	})
	return err
}

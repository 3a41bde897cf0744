package postgres

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// spendKey identifies a row of spend_rows.
type spendKey struct {
	ns   int64
	day  agent.Day
	hash string // of role, method and owner; see rowHash
}

// rowHash returns the key for a row that role, method and owner identify.
func rowHash(role, method, owner string) string {
	// always a digest, because the text begins with odd
	return strings.TrimPrefix(key(odd+role+"\x00"+method+"\x00"+owner), odd)
}

func spendKeyOf(ns int64, r *agent.SpendRow) spendKey {
	return spendKey{ns, r.Day, rowHash(r.Role, r.Method, r.Owner)}
}

// Reserve implements store.Namespace.
func (n *Namespace) Reserve(ctx context.Context, s agent.Spend) error {
	return n.repeat(ctx, func(ctx context.Context, c *change) error {
		b := &pgx.Batch{}
		if err := queueOpen(b, c.ns, &s); err != nil {
			return err
		}
		return c.send(ctx, b)
	})
}

// queueOpen queues a reservation. A second write with the same id replaces it.
func queueOpen(b *pgx.Batch, ns int64, s *agent.Spend) error {
	doc, err := json.Marshal(s)
	b.Queue("INSERT INTO spend_open (ns, id, doc) VALUES ($1, $2, $3) ON CONFLICT (ns, id) DO UPDATE SET doc = excluded.doc", ns, key(s.ID), doc)
	return err
}

// Settle implements store.Namespace.
func (n *Namespace) Settle(ctx context.Context, s agent.Spend) error {
	return n.settle(ctx, s.ID, func(agent.Spend) agent.Spend { return s })
}

// Forfeit implements store.Namespace.
func (n *Namespace) Forfeit(ctx context.Context, id string) error {
	return n.settle(ctx, id, func(reserved agent.Spend) agent.Spend { return reserved })
}

// settle settles a reservation with its cost. If a broken connection leaves open whether it succeeded, the next attempt
// finds out by the missing reservation.
func (n *Namespace) settle(ctx context.Context, id string, cost func(reserved agent.Spend) agent.Spend) error {
	return n.repeat(ctx, func(ctx context.Context, c *change) error {
		rows, err := c.Query(ctx, "DELETE FROM spend_open WHERE ns = $1 AND id = $2 RETURNING doc", c.ns, key(id))
		if err != nil {
			return err
		}
		var found []agent.Spend
		if err := eachDoc(rows, func(s agent.Spend) { found = append(found, s) }); err != nil || len(found) == 0 {
			return err
		}
		if s := cost(found[0]); s.Tokens != (agent.Tokens{}) {
			return c.addSpend(ctx, s)
		}
		return nil
	})
}

// addSpend adds the cost of a request to its row.
func (c *change) addSpend(ctx context.Context, s agent.Spend) error {
	row := agent.SpendRow{Day: s.Day, Role: s.Role, Method: s.Method, Owner: s.Owner}
	k := spendKeyOf(c.ns, &row)
	var models []byte
	// DO UPDATE locks an existing row and returns it, for the models to be added in Go.
	err := c.QueryRow(ctx, `INSERT INTO spend_rows AS r (ns, day, hash, role, method, owner) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (ns, day, hash) DO UPDATE SET calls = r.calls RETURNING models, calls, warm`,
		c.ns, int32(k.day), k.hash, []byte(s.Role), []byte(s.Method), []byte(s.Owner)).Scan(&models,
		&row.Calls, &row.Warm)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(models, &row.Models); err != nil {
		return err
	}
	one := store.NewLedger(store.Spent{Rows: []agent.SpendRow{row}})
	one.Settle(s)
	if models, err = json.Marshal(one.Spent(s.Day, s.Day).Rows[0].Models); err != nil {
		return err
	}
	_, err = c.Exec(ctx, "UPDATE spend_rows SET models = $4 WHERE ns = $1 AND day = $2 AND hash = $3", c.ns,
		int32(k.day), k.hash, models)
	return err
}

// Spent implements store.Namespace.
func (n *Namespace) Spent(ctx context.Context, first, last agent.Day) (out store.Spent, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) (err error) {
		out, err = readSpent(ctx, n.store.pool, ns, first, last)
		return err
	})
	return out, err
}

// batcher sends a batch: a pool or a transaction.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// readSpent reads the rows of the days, all reservations and all forges.
func readSpent(ctx context.Context, q batcher, ns int64, first, last agent.Day) (store.Spent, error) {
	var s store.Spent
	b := &pgx.Batch{}
	b.Queue("SELECT "+spendColumns+" FROM spend_rows WHERE ns = $1 AND day BETWEEN $2 AND $3", ns, int32(first),
		int32(last)).Query(func(rows pgx.Rows) (err error) {
		s.Rows, err = scanSpend(rows)
		return err
	})
	b.Queue("SELECT doc FROM spend_open WHERE ns = $1",
		ns).Query(func(rows pgx.Rows) error {
		return eachDoc(rows,
			func(o agent.Spend) { s.Open = append(s.Open, o) })
	})
	b.Queue("SELECT doc FROM spend_forges WHERE ns = $1", ns).Query(func(rows pgx.Rows) error {
		return eachDoc(rows, func(f agent.ForgeRow) { s.Forges = append(s.Forges, f) })
	})
	if err := q.SendBatch(ctx, b).Close(); err != nil {
		return s, err
	}
	return store.NewLedger(s).Spent(first, last), nil // for the sorting
}

const spendColumns = "day, calls, warm, role, method, owner, models"

// scanSpend reads spendColumns.
func scanSpend(rows pgx.Rows) (out []agent.SpendRow, err error) {
	var day int32
	var r agent.SpendRow
	var role, method, owner, models []byte
	_, err = pgx.ForEachRow(rows, []any{&day, &r.Calls, &r.Warm, &role, &method, &owner, &models}, func() error {
		r.Day, r.Role, r.Method, r.Owner, r.Models = agent.Day(day), string(role), string(method), string(owner), nil
		err := json.Unmarshal(models, &r.Models)
		out = append(out, r)
		return err
	})
	return out, err
}

// eachDoc decodes the document of each row and passes it to add.
func eachDoc[D any](rows pgx.Rows, add func(D)) error {
	var doc []byte
	_, err := pgx.ForEachRow(rows, []any{&doc}, func() error {
		var d D
		err := json.Unmarshal(doc, &d)
		add(d)
		return err
	})
	return err
}

// boundSpending applies the bounds of store.Ledger: it sums up old days, and the oldest ones if there are too many
// rows. It runs when a namespace is expired rather than with each call.
func (c *change) boundSpending(ctx context.Context, today agent.Day) error {
	var count int
	var oldest *int32
	if err := c.QueryRow(ctx, "SELECT count(*), min(day) FROM spend_rows WHERE ns = $1", c.ns).Scan(&count,
		&oldest); err != nil {
		return err
	}
	if count <= store.MaxSpendRows && (oldest == nil || agent.Day(*oldest) >= today-store.DetailedDays) {
		return nil
	}
	// In the order in which commits lock these rows.
	if _, err := c.Exec(ctx, "SELECT 1 FROM spend_rows WHERE ns = $1 ORDER BY day, hash FOR UPDATE", c.ns); err != nil {
		return err
	}
	// includes rows that others added in the meantime
	rows, err := c.Query(ctx, "DELETE FROM spend_rows WHERE ns = $1 RETURNING "+spendColumns, c.ns)
	if err != nil {
		return err
	}
	gone, err := scanSpend(rows)
	if err != nil {
		return err
	}
	l := store.NewLedger(store.Spent{Rows: gone})
	l.Bound(today)
	b := &pgx.Batch{}
	if err := queueSpent(b, c.ns, l.Spent(math.MinInt32, math.MaxInt32).Rows); err != nil {
		return err
	}
	return c.send(ctx, b)
}

// queueSpent queues inserts for days without rows.
func queueSpent(b *pgx.Batch, ns int64, rows []agent.SpendRow) error {
	for i := range rows {
		r := &rows[i]
		models, err := json.Marshal(r.Models)
		if err != nil {
			return err
		}
		k := spendKeyOf(ns, r)
		b.Queue("INSERT INTO spend_rows (ns, day, hash, calls, warm, role, method, owner, models) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
			ns, int32(r.Day), k.hash, r.Calls, r.Warm, []byte(r.Role), []byte(r.Method), []byte(r.Owner), models)
	}
	return nil
}

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

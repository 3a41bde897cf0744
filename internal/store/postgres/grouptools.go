package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// roles returns the roles whose ranks the calls may change. The value is true for roles that the calls may register.
func (g *group) roles() map[roleKey]bool {
	roles := map[roleKey]bool{}
	for _, w := range g.calls {
		ns := w.n.id.Load()
		for i := range w.c.Artifacts {
			if k := (roleKey{ns, w.c.Artifacts[i].Role}); !roles[k] {
				roles[k] = false // its rank is locked in any case
			}
		}
		for i := range w.c.Tools {
			k := roleKey{ns, w.c.Tools[i].Role}
			roles[k] = roles[k] || w.c.Tools[i].Register != nil
		}
	}
	return roles
}

// setTool sets a tool as it is in the database.
func (g *group) setTool(k roleKey, t *agent.Tool) { g.tools[k], g.toolsWere[k] = t, t }

// changeTools applies a call's changes to the tools.
func (g *group) changeTools(ns int64, changes []store.ToolChange) {
	for i := range changes {
		c := &changes[i]
		k := roleKey{ns, c.Role}
		old := g.tools[k]
		next, ok := c.Apply(old)
		if !ok {
			continue
		}
		use := old != nil && (c.Register == nil || c.IfAbsent)
		if was, seen := g.toolUses[k]; seen {
			use = use && was
		}
		g.tools[k], g.toolUses[k] = next, use
	}
}

// writeTools queues the changed tools, and the ranks that follow from them and from the artifacts.
func (g *group) writeTools(b *pgx.Batch) error {
	ranks := rankChanges{}
	for k := range g.toolUses {
		ranks.tool(k.ns, g.tools[k])
	}
	for k, x := range g.artifacts {
		if x.revised {
			ranks.artifact(k.ns, x.now.Role, x.was, x.now)
		}
	}
	ranks.queue(b, g.store.o.Now())
	return g.queueTools(b)
}

// queueTools queues the changed tools. Changes by use are written as differences, because other replicas use the same
// tools at the same time.
func (g *group) queueTools(b *pgx.Batch) error {
	var c columns
	var revisions, uses []int64
	var last []string
	for _, k := range sortedRoles(g.toolUses) {
		t, was := g.tools[k], g.toolsWere[k]
		if !g.toolUses[k] {
			if err := queueTool(b, k.ns, t); err != nil {
				return err
			}
			continue
		}
		c.addKey(rowKey{ns: k.ns, a: key(k.role)}, 0)
		revisions, uses, last = append(revisions, t.Revision-was.Revision), append(uses, t.UsageCount-was.UsageCount),
			append(last, usedAt(t))
	}
	if len(last) > 0 {
		b.Queue(`WITH done AS (UPDATE tools t SET revision = t.revision + k.revisions, usage_count = t.usage_count + k.uses,
				last_used = CASE WHEN t.last_used::timestamptz <= k.last_used::timestamptz THEN k.last_used ELSE t.last_used END
				FROM unnest($1::int8[], $2::text[], $3::int8[], $4::int8[], $5::text[]) AS k(ns, role, revisions, uses, last_used) WHERE (t.ns, t.role) = (k.ns, k.role) RETURNING 1)
			SELECT expect(count(*), $6) FROM done`, c.ns, c.a, revisions, uses, last, len(last))
	}
	return nil
}

// writeSpending queues the calls' counts for the rows of their days.
func (g *group) writeSpending(b *pgx.Batch) {
	rows := map[spendKey]*agent.SpendRow{}
	for _, x := range g.rows {
		e := x.log
		if e.CallID == "" {
			continue
		}
		r := agent.SpendRow{Day: agent.DayOf(x.w.now), Role: e.Role, Method: e.Method, Owner: agent.OwnerOf(e)}
		k := spendKeyOf(x.ns, &r)
		if rows[k] == nil {
			rows[k] = &r
		}
		rows[k].Calls++
		if e.ArtifactHit && e.OutcomeStatus == agent.StatusOK {
			rows[k].Warm++
		}
	}
	sorted := make([]spendKey, 0, len(rows))
	for k := range rows {
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, func(x, y spendKey) int {
		return cmp.Or(cmp.Compare(x.ns, y.ns), cmp.Compare(x.day, y.day), cmp.Compare(x.hash, y.hash))
	})
	var c columns
	var days, calls, warm []int64
	var roles, methods, owners [][]byte
	for _, k := range sorted {
		r := rows[k]
		c.addKey(rowKey{ns: k.ns, a: k.hash}, 0)
		days, calls, warm = append(days, int64(k.day)), append(calls, r.Calls), append(warm, r.Warm)
		roles, methods, owners = append(roles, []byte(r.Role)), append(methods, []byte(r.Method)),
			append(owners, []byte(r.Owner))
	}
	if len(days) > 0 {
		b.Queue(`INSERT INTO spend_rows AS r (ns, day, hash, calls, warm, role, method, owner)
			SELECT * FROM unnest($1::int8[], $2::int8[], $3::text[], $4::int8[], $5::int8[], $6::bytea[], $7::bytea[], $8::bytea[])
			ON CONFLICT (ns, day, hash) DO UPDATE SET calls = r.calls + excluded.calls, warm = r.warm + excluded.warm`, c.ns, days, c.a, calls, warm, roles, methods, owners)
	}
}

// countForges adds the programs that the calls keep to the rows of forges.
func (g *group) countForges(ctx context.Context, tx groupConn) error {
	for _, x := range g.rows {
		for i := range x.w.c.Artifacts {
			c := &x.w.c.Artifacts[i]
			if p := c.Generation; p == nil || p.ForgeUsage.ModelRequests <= 0 || x.log.CallID == "" {
				continue
			}
			if err := countForge(ctx, tx, x.ns, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// countForge counts one program. It takes its own round trips, because programs are rare compared with calls.
func countForge(ctx context.Context, tx groupConn, ns int64, c *agent.ArtifactChange) error {
	hash := rowHash(c.Role, c.MethodName, c.Generation.Model)
	var doc []byte
	// DO UPDATE locks an existing row and returns it. A new row holds null.
	if err := tx.QueryRow(ctx,
		`INSERT INTO spend_forges AS f (ns, hash, doc) VALUES ($1, $2, 'null') ON CONFLICT (ns, hash) DO UPDATE SET doc = f.doc RETURNING doc`,
		ns, hash).Scan(&doc); err != nil {
		return err
	}
	var row *agent.ForgeRow
	if err := json.Unmarshal(doc, &row); err != nil {
		return err
	}
	var before store.Spent
	if row != nil {
		before.Forges = []agent.ForgeRow{*row}
	}
	ledger := store.NewLedger(before)
	ledger.Call(0, &agent.LogEntry{}, []agent.ArtifactChange{*c})
	doc, err := json.Marshal(ledger.Spent(0, 0).Forges[0])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE spend_forges SET doc = $3 WHERE ns = $1 AND hash = $2", ns, hash, doc)
	return err
}

package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// rankChanges collects a transaction's changes of the ranks of roles.
type rankChanges map[roleKey]*rankChange

// rankChange is a difference, to be added to the row.
type rankChange struct {
	success, failure int64
	levels           [4]int64 // by store.LevelOf
	artifact, tool   *int64   // microseconds of the last use; nil means unchanged
}

// sortedRoles returns the roles in the order in which their rows are locked and written.
func sortedRoles[V any](roles map[roleKey]V) []roleKey {
	return slices.SortedFunc(maps.Keys(roles), func(a, b roleKey) int {
		return cmp.Or(cmp.Compare(a.ns, b.ns), strings.Compare(key(a.role), key(b.role)))
	})
}

func (r rankChanges) of(ns int64, role string) *rankChange {
	k := roleKey{ns, role}
	if r[k] == nil {
		r[k] = &rankChange{}
	}
	return r[k]
}

// tool records the last use of a registered tool.
func (r rankChanges) tool(ns int64, t *agent.Tool) {
	at := t.LastUsedAt.UnixMicro()
	r.of(ns, t.Role).tool = &at
}

// artifact records that an artifact of the role changed from was to is. nil means that there was or is none.
func (r rankChanges) artifact(ns int64, role string, was, is *agent.Artifact) {
	x := r.of(ns, role)
	if was != nil {
		f := store.FiguresOf(was)
		x.success, x.failure = x.success-f.Success, x.failure-f.Failure
		x.levels[store.LevelOf(f.State)]--
	}
	if is == nil {
		return
	}
	f := store.FiguresOf(is)
	x.success, x.failure = x.success+f.Success, x.failure+f.Failure
	x.levels[store.LevelOf(f.State)]++
	if at := f.LastUsedAt.UnixMicro(); x.artifact == nil || at > *x.artifact {
		x.artifact = &at
	}
}

// queue queues the changes in sorted order.
func (r rankChanges) queue(b *pgx.Batch, now time.Time) {
	if len(r) == 0 {
		return
	}
	n := len(r)
	spaces, roles, success, failure := make([]int64, n), make([]string, n), make([]int64, n), make([]int64, n)
	var levels [4][]int64
	artifacts, tools := make([]*int64, n), make([]*int64, n)
	for i, k := range sortedRoles(r) {
		x := r[k]
		spaces[i], roles[i], success[i], failure[i], artifacts[i], tools[i] = k.ns, key(k.role), x.success, x.failure,
			x.artifact, x.tool
		for l := range levels {
			levels[l] = append(levels[l], x.levels[l])
		}
	}
	// The figures are differences. Without any artifact, artifact_used is cleared.
	b.Queue(`INSERT INTO ranks AS r (ns, role, success, failure, degraded, candidate, probation, durable, artifact_used, tool_used, stale)
		SELECT x.*, coalesce(greatest(x.artifact_used, x.tool_used) <= $11, false)
		FROM unnest($1::int8[], $2::text[], $3::int8[], $4::int8[], $5::int4[], $6::int4[], $7::int4[], $8::int4[], $9::int8[], $10::int8[])
			AS x(ns, role, success, failure, degraded, candidate, probation, durable, artifact_used, tool_used)
		ON CONFLICT (ns, role) DO UPDATE SET success = r.success + excluded.success, failure = r.failure + excluded.failure,
			degraded = r.degraded + excluded.degraded, candidate = r.candidate + excluded.candidate,
			probation = r.probation + excluded.probation, durable = r.durable + excluded.durable,
			artifact_used = CASE WHEN r.degraded + r.candidate + r.probation + r.durable + excluded.degraded + excluded.candidate + excluded.probation + excluded.durable > 0
				THEN greatest(r.artifact_used, excluded.artifact_used) END,
			tool_used = greatest(excluded.tool_used, r.tool_used),
			stale = coalesce(greatest(excluded.tool_used, r.tool_used, r.artifact_used, excluded.artifact_used) <= $11, false)`,
		spaces, roles, success, failure, levels[0], levels[1], levels[2], levels[3], artifacts, tools, staleUntil(now))
}

// staleUntil returns the latest last use, in microseconds, of a tool that is stale now.
func staleUntil(now time.Time) int64 { return now.Add(-store.StaleAfter).UnixMicro() }

// rankedColumns are the columns that scanRanked reads.
const rankedColumns = `r.success, r.failure, r.degraded, r.candidate, r.probation, r.durable, r.used,
	(SELECT array_agg(a.method ORDER BY a.method) FROM artifacts a WHERE a.ns = r.ns AND a.role = r.role), ` + toolColumns

// bestTools selects the best tools, best first, in the order of store.Ranking.
const bestTools = "SELECT " + rankedColumns +
	` FROM ranks r JOIN tools t USING (ns, role) WHERE r.ns = $1 AND r.tool_used IS NOT NULL
	ORDER BY r.stale, r.rank DESC, r.level DESC, r.role LIMIT $2`

// scanRanked reads rankedColumns.
func scanRanked(row pgx.Row, now time.Time) (out store.RankedTool, err error) {
	var success, failure, used int64
	var levels [4]int
	out.Tool, err = scanTool(row, &success, &failure, &levels[0], &levels[1], &levels[2], &levels[3], &used,
		&out.Methods)
	out.Score = store.Score(success, failure, time.UnixMicro(used), now)
	out.State = store.BestState(levels)
	return out, err
}

// RankTools implements store.Namespace. It reads as many index entries as it returns tools. A tool that has become
// stale is moved in the index once.
func (n *Namespace) RankTools(ctx context.Context, now time.Time, limit int) (out []store.RankedTool, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		out = []store.RankedTool{}
		b := &pgx.Batch{}
		b.Queue("UPDATE ranks SET stale = true WHERE ns = $1 AND tool_used IS NOT NULL AND NOT stale AND used <= $2",
			ns, staleUntil(now))
		b.Queue(bestTools, ns, limit).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				t, err := scanRanked(rows, now)
				if err != nil {
					return err
				}
				out = append(out, t)
			}
			return rows.Err()
		})
		return n.store.pool.SendBatch(ctx, b).Close()
	})
	return out, err
}

// RankedTool implements store.Namespace.
func (n *Namespace) RankedTool(ctx context.Context, role string, now time.Time) (out store.RankedTool, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) (err error) {
		out, err = scanRanked(n.store.pool.QueryRow(ctx, "SELECT "+rankedColumns+
			" FROM ranks r JOIN tools t USING (ns, role) WHERE r.ns = $1 AND r.role = $2", ns, key(role)), now)
		return err
	})
	return out, err
}

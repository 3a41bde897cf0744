package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// valueHours returns how long values are kept; 0 means as long as their call.
func (n *Namespace) valueHours(ctx context.Context) (int, error) {
	p, _, err := n.Policy(ctx)
	return p.Retention.ValueHours, err
}

// decodeCall decodes a stored log entry.
func decodeCall(doc []byte) (e agent.LogEntry, err error) {
	if err := json.Unmarshal(doc, &e); err != nil {
		return e, fmt.Errorf("stored call: %w", err)
	}
	return e, nil
}

// decodeLog decodes a stored log entry for readers: it adds the correcting call and removes what has expired together
// with the values.
func decodeLog(doc []byte, correctedBy string, hours int, now time.Time) (agent.LogEntry, error) {
	e, err := decodeCall(doc)
	e.CorrectedBy = correctedBy
	store.ForgetDebug(&e, hours, now)
	return e, err
}

// Call implements store.Namespace.
func (n *Namespace) Call(ctx context.Context, callID string) (out store.Call, err error) {
	hours, err := n.valueHours(ctx)
	if err != nil {
		return out, err
	}
	now := n.store.o.Now()
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		var doc, outcome, effects []byte
		var correctedBy string
		var at *time.Time
		row := n.store.pool.QueryRow(ctx,
			`SELECT c.doc, c.corrected_by, v.at, v.outcome, v.effects FROM calls c LEFT JOIN call_values v USING (ns, call_id)
			WHERE c.ns = $1 AND c.call_id = $2`, ns, key(callID))
		if err := row.Scan(&doc, &correctedBy, &at, &outcome, &effects); err != nil {
			return err
		}
		if out.Log, err = decodeLog(doc, correctedBy, hours, now); err != nil {
			return err
		}
		if at == nil || hours > 0 && now.Sub(*at) >= time.Duration(hours)*time.Hour {
			return nil
		}
		out.Effects = effects
		if outcome == nil {
			return nil
		}
		out.Outcome = &agent.Outcome{}
		return json.Unmarshal(outcome, out.Outcome)
	})
	return out, err
}

// Previews implements store.Namespace.
func (n *Namespace) Previews(ctx context.Context, callIDs []string) (out map[string]string, err error) {
	out = map[string]string{}
	if len(callIDs) == 0 {
		return out, nil
	}
	hours, err := n.valueHours(ctx)
	if err != nil {
		return nil, err
	}
	since := time.Time{}
	if hours > 0 {
		since = n.store.o.Now().Add(-time.Duration(hours) * time.Hour)
	}
	ids, keys := map[string]string{}, make([]string, len(callIDs))
	for i, id := range callIDs {
		keys[i] = key(id)
		ids[keys[i]] = id
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx,
			"SELECT call_id, substring(outcome FROM 1 FOR $3) FROM call_values WHERE ns = $1 AND call_id = ANY($2) AND at > $4 AND outcome IS NOT NULL",
			ns, keys, store.PreviewBytes, since)
		if err != nil {
			return err
		}
		var id string
		var first []byte
		_, err = pgx.ForEachRow(rows, []any{&id, &first}, func() error {
			if text := store.Preview(first); text != "" {
				out[ids[id]] = text
			}
			return nil
		})
		return err
	})
	return out, err
}

// Replay implements store.Namespace. A commit that gave up waiting for the standby is visible nonetheless. The reply
// must not be returned before the standby has it, so the query writes a message, whose own commit waits for the
// standby.
func (n *Namespace) Replay(ctx context.Context, idempotencyKey string) (store.Idempotent, error) {
	out := store.Idempotent{Key: idempotencyKey}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	err := n.read(ctx, func(ctx context.Context, ns int64) error {
		var id, hash, reply []byte
		row := n.store.pool.QueryRow(ctx,
			`SELECT call_id, body_hash, reply, pg_logical_emit_message(true, 'recurgentd', '')
			FROM replies WHERE ns = $1 AND key = $2 AND at > $3`, ns, key(idempotencyKey), n.store.o.Now().Add(-store.KeyLife))
		if err := row.Scan(&id, &hash, &reply, nil); err != nil {
			return err
		}
		out.CallID, out.BodyHash, out.Reply = string(id), string(hash), reply
		return nil
	})
	if err != nil {
		return store.Idempotent{}, err
	}
	return out, nil
}

// Content implements store.Namespace. It marks the content as used.
func (n *Namespace) Content(ctx context.Context, ref string) (value json.RawMessage, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		return n.store.pool.QueryRow(ctx,
			"UPDATE contents SET used = nextval('content_order') WHERE ns = $1 AND ref = $2 RETURNING value", ns,
			key(ref)).Scan((*[]byte)(&value))
	})
	return value, err
}

// writeContents stores the results of the group's calls, and evicts the least recently used ones that exceed the
// policy's limits.
func (g *group) writeContents(b *pgx.Batch) {
	trim := map[int64]agent.RetentionPolicy{}
	for _, x := range g.rows {
		c := x.w.c.Content
		if c == nil {
			continue
		}
		b.Queue(`INSERT INTO contents AS c (ns, ref, used, sessions, value) VALUES ($1, $2, nextval('content_order'), ARRAY[$3::text], $4)
			ON CONFLICT (ns, ref) DO UPDATE SET used = excluded.used, value = excluded.value,
			sessions = CASE WHEN $3 = ANY(c.sessions) THEN c.sessions ELSE c.sessions || $3::text END`, x.ns, key(c.Ref), key(x.w.c.SessionID), []byte(c.Value))
		trim[x.ns] = g.policies[x.ns].retention
	}
	for ns, limit := range trim {
		if limit.ContentEntries > 0 || limit.ContentBytes > 0 {
			// Rows that another transaction has locked are skipped; a later commit evicts them.
			b.Queue(`DELETE FROM contents WHERE (ns, ref) IN (SELECT ns, ref FROM contents JOIN (
					SELECT ns, ref, row_number() OVER newest AS place, sum(length(value)) OVER newest AS bytes FROM contents WHERE ns = $1 WINDOW newest AS (ORDER BY used DESC)
				) AS k USING (ns, ref) WHERE ($2 > 0 AND place > $2) OR ($3 > 0 AND bytes > $3) FOR UPDATE OF contents SKIP LOCKED)`,
				ns, int64(limit.ContentEntries), int64(limit.ContentBytes))
		}
	}
}

// Patterns implements store.Namespace.
func (n *Namespace) Patterns(ctx context.Context, role string) (out []agent.PatternEvent, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx,
			"SELECT doc FROM (SELECT n, doc FROM patterns WHERE ns = $1 AND role = $2 ORDER BY n DESC LIMIT $3) AS newest ORDER BY n", ns, key(role), store.PatternsKept)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, decoded[agent.PatternEvent])
		return err
	})
	return out, err
}

// decoded decodes a row of one document.
func decoded[V any](row pgx.CollectableRow) (v V, err error) {
	var doc []byte
	if err := row.Scan(&doc); err != nil {
		return v, err
	}
	if err := json.Unmarshal(doc, &v); err != nil {
		return v, fmt.Errorf("stored document: %w", err)
	}
	return v, nil
}

// Evidence implements store.Namespace.
func (n *Namespace) Evidence(ctx context.Context, role, method string) (agent.MethodEvidence, error) {
	all, err := n.evidence(ctx, "role = $2 AND method = $3", key(role), key(method))
	if err != nil || len(all) == 0 {
		return agent.MethodEvidence{Role: role, Method: method}, err
	}
	return all[0], nil
}

// AllEvidence implements store.Namespace.
func (n *Namespace) AllEvidence(ctx context.Context) ([]agent.MethodEvidence, error) {
	return n.evidence(ctx, "remarkable")
}

// evidence reads the evidence that where selects, sorted by role and method. In where, args start at $2.
func (n *Namespace) evidence(ctx context.Context, where string, args ...any) (out []agent.MethodEvidence, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx, "SELECT doc FROM evidence WHERE ns = $1 AND "+where+
			" ORDER BY role, method", append([]any{ns}, args...)...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, decoded[agent.MethodEvidence])
		return err
	})
	return out, err
}

// ListCalls implements store.Namespace.
func (n *Namespace) ListCalls(ctx context.Context, q store.CallQuery) (out []agent.LogEntry, err error) {
	if q.Limit <= 0 {
		q.Limit = store.DefaultLimit
	}
	if q.Stable {
		if err := n.store.settle(ctx); err != nil {
			return nil, err
		}
	}
	hours, err := n.valueHours(ctx)
	if err != nil {
		return nil, err
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		f, next, err := n.callFilter(ctx, ns, &q)
		if err != nil || f == nil {
			out = []agent.LogEntry{}
			return err
		}
		out, err = n.logEntries(ctx, f, " ORDER BY n DESC"+f.limit(q.Limit), hours)
		if err == nil && q.Scan != nil && len(out) < q.Limit {
			q.Scan.Next = next
		}
		return err
	})
	return out, err
}

// CallsAfter implements store.Namespace.
func (n *Namespace) CallsAfter(ctx context.Context, after string, limit int) (out []agent.LogEntry, err error) {
	if err := n.store.settle(ctx); err != nil {
		return nil, err
	}
	hours, err := n.valueHours(ctx)
	if err != nil {
		return nil, err
	}
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		f := &filter{}
		f.and("ns = ?", ns)
		f.where.WriteString(" AND n < " + horizon)
		if after != "" {
			from, err := n.placeOf(ctx, ns, after)
			if err != nil {
				return err
			}
			if from == nil {
				return store.ErrNotFound
			}
			f.and("n > ?", *from)
		}
		out, err = n.logEntries(ctx, f, " ORDER BY n"+f.limit(limit), hours)
		return err
	})
	return out, err
}

// logEntries reads the entries that the filter selects. order is an SQL clause. Values are kept for hours.
func (n *Namespace) logEntries(ctx context.Context, f *filter, order string, hours int) ([]agent.LogEntry, error) {
	rows, err := n.store.pool.Query(ctx, "SELECT doc, corrected_by FROM calls WHERE "+f.where.String()+order, f.args...)
	if err != nil {
		return nil, err
	}
	now := n.store.o.Now()
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (agent.LogEntry, error) {
		var doc []byte
		var correctedBy string
		if err := row.Scan(&doc, &correctedBy); err != nil {
			return agent.LogEntry{}, err
		}
		return decodeLog(doc, correctedBy, hours, now)
	})
}

// horizon is the place in the log below which no more calls appear, as seen by the query's own snapshot. The database's
// function call_horizon takes a new snapshot: a call that commits in between may be below its result and still be
// invisible to the query.
const horizon = "(SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::int8 + added) << 20 FROM era)"

// callFilter returns the conditions of a query, or nil if nothing can match. next is the cursor to continue from if the
// page ends at its scan limit; "" if the log ends first.
func (n *Namespace) callFilter(ctx context.Context, ns int64, q *store.CallQuery) (f *filter, next string, err error) {
	f = &filter{}
	f.and("ns = ?", ns)
	if q.Stable {
		f.where.WriteString(" AND n < " + horizon)
	}
	if q.Before != "" {
		before, err := n.placeOf(ctx, ns, q.Before)
		if err != nil || before == nil {
			return nil, "", err
		}
		f.and("n < ?", *before)
	}
	if q.Scan != nil {
		var last int64
		if last, next, err = n.scanEnd(ctx, f, q.Scan.Most); err != nil {
			return nil, "", err
		}
		f.and("n >= ?", last)
	}
	f.equal("session", q.SessionID)
	f.equal("role", q.Role)
	f.equal("method", q.Method)
	f.equal("status", q.Status)
	f.equal("source", q.Source)
	f.equal("error_type", q.ErrorType)
	f.equal("trace", q.TraceID)
	f.equal("parent", q.ParentCallID)
	f.equal("owner", q.Owner)
	f.flag("weak", q.WeakSuccess)
	f.flag("history_access", q.HistoryAccess)
	f.between("at", q.Since, q.Until)
	return f, next, nil
}

// placeOf returns the place of a call in the log, or nil if the log does not have it.
func (n *Namespace) placeOf(ctx context.Context, ns int64, callID string) (place *int64, err error) {
	err = n.store.pool.QueryRow(ctx, "SELECT n FROM calls WHERE ns = $1 AND call_id = $2", ns, key(callID)).Scan(&place)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return place, err
}

// scanEnd returns the place and id of the last call that a page may read. id is "" if the log ends before the limit.
func (n *Namespace) scanEnd(ctx context.Context, f *filter, most int) (last int64, id string, err error) {
	args := append(append([]any{}, f.args...), max(most, 1)-1)
	// The second row only shows whether the log continues.
	rows, err := n.store.pool.Query(ctx, "SELECT n, doc FROM calls WHERE "+f.where.String()+" ORDER BY n DESC OFFSET "+
		place(len(args))+" LIMIT 2", args...)
	if err != nil {
		return 0, "", err
	}
	last = math.MinInt64 // copied calls have places below 0
	var at int64
	var doc []byte
	found := 0
	if _, err = pgx.ForEachRow(rows, []any{&at, &doc}, func() error {
		if found++; found == 1 {
			e, err := decodeCall(doc)
			last, id = at, e.CallID
			return err
		}
		return nil
	}); err != nil {
		return 0, "", err
	}
	if found < 2 {
		id = ""
	}
	return last, id, nil
}

// A filter builds the conditions of a query and collects their arguments.
type filter struct {
	where strings.Builder
	args  []any
}

// and adds a condition, in which ? stands for arg.
func (f *filter) and(condition string, arg any) {
	if f.where.Len() > 0 {
		f.where.WriteString(" AND ")
	}
	f.where.WriteString(strings.ReplaceAll(condition, "?", f.arg(arg)))
}

// arg adds an argument and returns its placeholder.
func (f *filter) arg(arg any) string {
	f.args = append(f.args, arg)
	return place(len(f.args))
}

// place returns the placeholder of the nth argument.
func place(n int) string { return "$" + strconv.Itoa(n) }

// flag adds the condition that the column equals *value. A nil value matches any.
func (f *filter) flag(column string, value *bool) {
	if value == nil {
		return
	}
	if f.where.WriteString(" AND "); !*value {
		f.where.WriteString("NOT ")
	}
	f.where.WriteString(column)
}

// equal adds the condition that the column, which holds a result of key, is the text. "" matches any.
func (f *filter) equal(column, text string) {
	if text != "" {
		f.and(column+" = ?", key(text))
	}
}

// between adds the condition that the time lies in [since, until). A zero time means no bound.
func (f *filter) between(column string, since, until time.Time) {
	if !since.IsZero() {
		f.and(column+" >= ?", since)
	}
	if !until.IsZero() {
		f.and(column+" < ?", until)
	}
}

// limit returns a LIMIT clause. Conditions must be added before.
func (f *filter) limit(n int) string { return " LIMIT " + f.arg(n) }

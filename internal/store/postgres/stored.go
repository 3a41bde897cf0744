package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// keptStored is an owner's sums as this replica last read them.
type keptStored struct {
	store.Stored
	at  time.Time
	era int64 // value of Namespace.freed at that time
}

// Stored implements store.Namespace. It queries the database at most once per Options.StoredLag for each owner, and
// folds the sums no more often.
func (n *Namespace) Stored(ctx context.Context, owner string) (s store.Stored, err error) {
	owner = cmp.Or(owner, agent.LocalOwner)
	k, era := rowKey{ns: n.id.Load(), a: key(owner)}, n.freed.Load()
	if kept, ok := n.store.keptStored.GetIfPresent(k); ok && kept.era == era &&
		time.Since(kept.at) < n.store.o.StoredLag {
		return kept.Stored, nil
	}
	now := time.Now()
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		s, k.ns = store.Stored{}, ns
		var all store.Bytes
		b := &pgx.Batch{}
		// At most one caller per StoredLag folds. readStored includes changes that are not folded, so nobody waits for
		// it.
		if last := n.store.folded.Load(); now.Sub(time.Unix(0, last)) >= n.store.o.StoredLag &&
			n.store.folded.CompareAndSwap(last, now.UnixNano()) {
			b.Queue("SELECT fold_stored(NULL)")
		}
		b.Queue(readStored, ns, k.a).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var of rowKey
				b, err := scanStored(rows, &of.ns, &of.a)
				if err != nil {
					return err
				}
				switch {
				case of.ns == none:
					all = b
				case of.a == "":
					s.All = b
				default:
					s.Own = b
				}
			}
			return rows.Err()
		})
		err := n.store.pool.SendBatch(ctx, b).Close()
		s.Others = all.Minus(s.All)
		return err
	})
	if err == nil {
		n.store.keptStored.Set(k, keptStored{s, now, era})
	}
	return s, err
}

const storedColumns = "files, contexts, histories, values, tools, examples"

// readStored reads the sums of an owner, of a namespace and of all namespaces, including changes that are not folded
// yet.
const readStored = `SELECT ns, owner, sum(files)::int8, sum(contexts)::int8, sum(histories)::int8, sum(values)::int8, sum(tools)::int8, sum(examples)::int8
	FROM (SELECT ns, owner, ` + storedColumns + ` FROM stored
		UNION ALL SELECT k.ns, k.owner, ` + storedColumns + ` FROM stored_changes c CROSS JOIN LATERAL (VALUES (c.ns, c.owner), (c.ns, ''), (0, '')) AS k(ns, owner)) s
	WHERE (ns, owner) IN (($1, $2), ($1, ''), (0, '')) GROUP BY 1, 2`

// scanStored reads storedColumns, after the columns scanned into before.
func scanStored(row pgx.Row, before ...any) (b store.Bytes, err error) {
	return b, row.Scan(append(before, &b.Files, &b.Contexts, &b.Histories, &b.Values, &b.Tools, &b.Examples)...)
}

// ListStored implements store.Namespace.
func (n *Namespace) ListStored(ctx context.Context, after string, limit int) (out []store.OwnerBytes, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		out = []store.OwnerBytes{}
		b := &pgx.Batch{}
		b.Queue("SELECT fold_stored($1)", ns)
		b.Queue("SELECT owner, "+storedColumns+
			` FROM stored WHERE ns = $1 AND owner > $2 AND (files, contexts, histories, values, tools, examples) <> (0, 0, 0, 0, 0, 0) ORDER BY owner LIMIT $3`,
			ns, key(after), limit).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				var o store.OwnerBytes
				var err error
				if o.Bytes, err = scanStored(rows, &o.Owner); err != nil {
					return err
				}
				out = append(out, o)
			}
			return rows.Err()
		})
		return n.store.pool.SendBatch(ctx, b).Close()
	})
	return out, err
}

// freeing invalidates the cached sums of this replica after a successful deletion. It returns err.
func (n *Namespace) freeing(err error) error {
	if err == nil {
		n.freed.Add(1)
	}
	return err
}

// toolBytes collects the sizes of artifacts and of the contracts of roles.
type toolBytes struct {
	keys  columns // rows to replace
	rows  columns
	owner []string
	tools []int64
	shown []int64 // bytes of examples
}

// add adds the sizes of a row. A row of size 0 is added too, to show that it was counted.
func (t *toolBytes) add(k rowKey, each func(add func(owner string, b store.Bytes))) {
	t.keys.addKey(k, 0)
	var sums store.Sums
	each(sums.Add)
	list := sums.List()
	if len(list) == 0 {
		list = []store.OwnerBytes{{Owner: agent.LocalOwner}}
	}
	for _, o := range list {
		t.rows.addKey(k, 0)
		t.owner, t.tools, t.shown = append(t.owner, key(o.Owner)), append(t.tools, o.Tools), append(t.shown, o.Examples)
	}
}

const (
	dropToolBytes = "DELETE FROM tool_bytes t USING unnest($1::int8[], $2::text[], $3::text[]) AS k(ns, role, method) WHERE (t.ns, t.role, t.method) = (k.ns, k.role, k.method)"
	addToolBytes  = "INSERT INTO tool_bytes (ns, role, method, owner, tools, examples) SELECT * FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::int8[])"
)

func (t *toolBytes) queue(b *pgx.Batch) {
	b.Queue(dropToolBytes, t.keys.ns, t.keys.a, t.keys.b)
	b.Queue(addToolBytes, t.rows.ns, t.rows.a, t.rows.b, t.owner, t.tools, t.shown)
}

// countTools is the part of a migration that decodes documents: it counts the sizes of existing tools.
func countTools(ctx context.Context, tx *sql.Tx) error {
	for _, q := range []struct {
		query string
		add   func(k rowKey, doc, body []byte) (*toolBytes, error)
	}{
		{"SELECT a.ns, a.role, a.method, a.head, b.body FROM artifacts a JOIN artifact_bodies b USING (ns, role, method) WHERE (a.ns, a.role, a.method) > ($1, $2, $3) ORDER BY 1, 2, 3 LIMIT 100", countedArtifact},
		{"SELECT ns, role, '', doc, ''::bytea FROM tools WHERE (ns, role, '') > ($1, $2, $3) ORDER BY 1, 2 LIMIT 100",
			countedTool},
	} {
		for at, more := (rowKey{ns: -1}), true; more; {
			var err error
			if at, more, err = countPage(ctx, tx, q.query, at, q.add); err != nil {
				return err
			}
		}
	}
	return nil
}

func countedArtifact(k rowKey, head, body []byte) (*toolBytes, error) {
	a, err := decodeArtifact(head, body)
	t := &toolBytes{}
	t.add(k, func(add func(string, store.Bytes)) { store.ArtifactBytes(a, add) })
	return t, err
}

func countedTool(k rowKey, doc, _ []byte) (*toolBytes, error) {
	var tool agent.Tool
	err := json.Unmarshal(doc, &tool)
	t := &toolBytes{}
	t.add(k, func(add func(string, store.Bytes)) { store.ToolBytes(&tool, add) })
	return t, err
}

// countPage counts the next rows after at. more reports whether there may be further rows. A document that cannot be
// decoded counts as nothing.
func countPage(ctx context.Context, tx *sql.Tx, query string, at rowKey,
	add func(rowKey, []byte, []byte) (*toolBytes, error)) (last rowKey, more bool, err error) {
	rows, err := tx.QueryContext(ctx, query, at.ns, at.a, at.b)
	if err != nil {
		return at, false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var counted []*toolBytes
	for rows.Next() {
		var doc, body []byte
		if err := rows.Scan(&at.ns, &at.a, &at.b, &doc, &body); err != nil {
			return at, false, err
		}
		more = true
		if t, err := add(at, doc, body); err == nil {
			counted = append(counted, t)
		}
	}
	if err := rows.Err(); err != nil {
		return at, false, err
	}
	for _, t := range counted {
		for i := range t.owner {
			if _, err := tx.ExecContext(ctx,
				"INSERT INTO tool_bytes (ns, role, method, owner, tools, examples) VALUES ($1, $2, $3, $4, $5, $6)",
				t.rows.ns[i], t.rows.a[i], t.rows.b[i], t.owner[i], t.tools[i], t.shown[i]); err != nil {
				return at, false, err
			}
		}
	}
	return at, more, nil
}

// storedSums returns the sums of storedColumns as an array.
const storedSums = `ARRAY[coalesce(sum(files), 0), coalesce(sum(contexts), 0), coalesce(sum(histories), 0), coalesce(sum(values), 0), coalesce(sum(tools), 0), coalesce(sum(examples), 0)]`

// storedInvariants compare the sums with a recount.
var storedInvariants = []struct{ table, query string }{
	{"stored", `WITH said AS (SELECT ns, owner, ` + storedColumns +
		` FROM stored WHERE owner <> '' UNION ALL SELECT ns, owner, ` + storedColumns + ` FROM stored_changes),
		there AS (SELECT ns, owner, 0 AS files, 4096 + octet_length(doc) AS contexts, 0 AS histories, 0 AS values, 0 AS tools, 0 AS examples FROM sessions
			UNION ALL SELECT c.ns, s.owner, 0, octet_length(c.name) + octet_length(c.value), 0, 0, 0, 0 FROM session_context c JOIN sessions s ON s.ns = c.ns AND s.id = c.session
			UNION ALL SELECT c.ns, s.owner, 0, 0, octet_length(c.doc), 0, 0, 0 FROM records c JOIN sessions s ON s.ns = c.ns AND s.id = c.session
			UNION ALL SELECT c.ns, coalesce(c.owner, s.owner, 'local'), 0, 0, 0, coalesce(octet_length(c.outcome), 0) + coalesce(octet_length(c.effects), 0) + c.debug, 0, 0
				FROM call_values c LEFT JOIN sessions s ON s.ns = c.ns AND s.id = c.session
			UNION ALL SELECT c.ns, coalesce(s.owner, 'local'), 0, 0, 0, coalesce(octet_length(c.reply), 0), 0, 0 FROM replies c LEFT JOIN sessions s ON s.ns = c.ns AND s.id = c.session
			UNION ALL SELECT ns, CASE owner WHEN '' THEN 'local' ELSE owner END, CASE WHEN internal THEN 0 ELSE 512 + bytes END, 0, CASE WHEN internal AND expires_at IS NULL THEN bytes ELSE 0 END,
				CASE WHEN internal AND expires_at IS NOT NULL THEN bytes ELSE 0 END, 0, 0 FROM files
			UNION ALL SELECT ns, owner, 0, 0, 0, 0, tools, examples FROM tool_bytes)
		SELECT format('%s of namespace %s counts %s bytes (files, contexts, histories, values, tools, examples); there are %s', owner, ns, s.sums, t.sums)
		FROM (SELECT ns, owner, ` + storedSums + ` AS sums FROM said GROUP BY 1, 2) s FULL JOIN (SELECT ns, owner, ` + storedSums + ` AS sums FROM there GROUP BY 1, 2) t USING (ns, owner)
		WHERE coalesce(s.sums, '{0,0,0,0,0,0}') <> coalesce(t.sums, '{0,0,0,0,0,0}')`},
	{"stored", `SELECT format('the owners of namespace %s count %s bytes together, not %s', ns, o.sums, a.sums) FROM (SELECT ns, ` + storedSums + ` AS sums FROM stored WHERE owner <> '' GROUP BY 1) o
		FULL JOIN (SELECT ns, ` + storedSums + ` AS sums FROM stored WHERE owner = '' AND ns <> 0 GROUP BY 1) a USING (ns) WHERE o.sums IS DISTINCT FROM a.sums`},
	{"stored", `SELECT format('all namespaces count %s bytes together, not %s', n.sums, a.sums) FROM (SELECT ` +
		storedSums + ` AS sums FROM stored WHERE owner = '' AND ns <> 0) n,
		(SELECT ` + storedSums + ` AS sums FROM stored WHERE owner = '' AND ns = 0) a WHERE n.sums <> a.sums`},
}

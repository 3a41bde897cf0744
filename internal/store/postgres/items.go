package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Items passes everything in the store to give, in one consistent snapshot. Daemons may use the store meanwhile. give
// must not keep an item.
func (s *Store) Items(ctx context.Context, give func(*store.Item) error) error {
	return s.items(ctx, "", give)
}

// items passes the items of one namespace, or of all if only is "".
func (s *Store) items(ctx context.Context, only agent.Namespace, give func(*store.Item) error) error {
	ctx, end, err := s.health.while(ctx)
	if err != nil {
		return err
	}
	defer end()
	// The walk takes long. A connection from the pool, or from a pooler, would then be missing for heartbeats.
	conn, err := s.o.look(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // it only reads, so the error does not matter
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return unavailable(err)
	}
	rows, err := tx.Query(ctx, "SELECT id, name, created_at, due FROM namespaces WHERE $1 IN ('', name) ORDER BY name",
		string(only))
	if err != nil {
		return unavailable(err)
	}
	type space struct {
		id   int64
		info store.NamespaceInfo
	}
	spaces, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (x space, err error) {
		x.info, err = scanNamespace(row, &x.id)
		return x, err
	})
	if err != nil {
		return unavailable(err)
	}
	if len(spaces) == 0 {
		return fmt.Errorf("%w: namespace %s", store.ErrNotFound, only)
	}
	for _, x := range spaces {
		g := &giver{Tx: tx, ctx: ctx, ns: x.id, name: x.info.Name, ended: s.endedBefore(), give: give}
		if err := g.all(&x.info); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// giver passes on the items of a namespace. It lives for one walk.
type giver struct {
	pgx.Tx
	ctx   context.Context // context of the walk
	ns    int64
	name  agent.Namespace
	ended time.Time // what was removed before this time is gone for good
	give  func(*store.Item) error
}

func (g *giver) item(x store.Item) error {
	x.Namespace = g.name
	return g.give(&x)
}

// each passes on the items that scan makes of the rows. $1 is the namespace.
func (g *giver) each(sql string, scan func(row pgx.Row) (store.Item, error), args ...any) error {
	rows, err := g.Query(g.ctx, sql, append([]any{g.ns}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		x, err := scan(rows)
		if err == nil {
			err = g.item(x)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

// document returns a function that reads a row of one document.
func document[D any](item func(*D) store.Item) func(pgx.Row) (store.Item, error) {
	return func(row pgx.Row) (store.Item, error) {
		var doc []byte
		d := new(D)
		if err := row.Scan(&doc); err != nil {
			return store.Item{}, err
		}
		return item(d), json.Unmarshal(doc, d)
	}
}

// all passes on the items of one namespace, in the order that store.Item describes.
func (g *giver) all(info *store.NamespaceInfo) error {
	if err := g.item(store.Item{Space: info}); err != nil {
		return err
	}
	for _, part := range []func() error{g.registry, g.sessions, g.calls, g.learned, g.files, g.audit} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// registry passes on the policy, connections, tools, artifacts, archived versions and programs.
func (g *giver) registry() error {
	if err := g.each("SELECT revision, doc FROM policies WHERE ns = $1", func(row pgx.Row) (store.Item, error) {
		p := &store.ItemPolicy{}
		return store.Item{Policy: p}, row.Scan(&p.Revision, &p.Policy)
	}); err != nil {
		return err
	}
	if err := g.each("SELECT doc FROM connections WHERE ns = $1 ORDER BY name",
		document(func(c *agent.Connection) store.Item { return store.Item{Connection: c} })); err != nil {
		return err
	}
	if err := g.each("SELECT "+toolColumns+" FROM tools t WHERE ns = $1 ORDER BY role",
		func(row pgx.Row) (store.Item, error) {
			t, err := scanTool(row)
			return store.Item{Tool: &t}, err
		}); err != nil {
		return err
	}
	if err := g.each("SELECT a.head, b.body FROM artifacts a JOIN artifact_bodies b USING (ns, role, method) WHERE a.ns = $1 ORDER BY a.role, a.method", func(row pgx.Row) (store.Item, error) {
		var head, body []byte
		if err := row.Scan(&head, &body); err != nil {
			return store.Item{}, err
		}
		a, err := decodeArtifact(head, body)
		return store.Item{Artifact: a}, err
	}); err != nil {
		return err
	}
	if err := g.each("SELECT by, at, deleted, n, tool, doc FROM archive WHERE ns = $1 AND NOT (deleted AND at <= $2) ORDER BY n", func(row pgx.Row) (store.Item, error) {
		out := &store.ItemArchived{}
		x, err := scanArchived(row, &out.By, &out.At, &out.Deleted)
		out.Tool, out.Artifact = x.tool, x.artifact
		return store.Item{Archived: out}, err
	}, g.ended); err != nil {
		return err
	}
	return g.each("SELECT code FROM programs WHERE ns = $1 ORDER BY checksum", func(row pgx.Row) (store.Item, error) {
		var code []byte
		err := row.Scan(&code)
		text := string(code)
		return store.Item{Program: &text}, err
	})
}

// sessions passes on each session before its records. The records are streamed, not loaded at once.
func (g *giver) sessions() error {
	rows, err := g.Query(g.ctx, "SELECT "+sessionColumns+" FROM sessions WHERE ns = $1 ORDER BY id", g.ns)
	if err != nil {
		return err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (agent.Session, error) { return scanSession(row) })
	if err != nil {
		return err
	}
	for i := range list {
		s := &list[i]
		values, err := readContext(g.ctx, g, g.ns, s.ID)
		if err != nil {
			return err
		}
		if err := g.item(store.Item{Session: &store.ItemSession{Session: *s, Context: values}}); err != nil {
			return err
		}
		if err := g.each("SELECT doc FROM records WHERE ns = $1 AND session = $2 ORDER BY seq",
			func(row pgx.Row) (store.Item, error) {
				r := &store.ItemRecord{SessionID: s.ID}
				return store.Item{Record: r}, row.Scan(&r.Record)
			}, key(s.ID)); err != nil {
			return err
		}
	}
	return nil
}

// calls passes on the call log, then values with their replies, then replies without values.
func (g *giver) calls() error {
	if err := g.each("SELECT doc FROM calls WHERE ns = $1 ORDER BY n",
		func(row pgx.Row) (x store.Item, err error) { return x, row.Scan(&x.Call) }); err != nil {
		return err
	}
	if err := g.each(`SELECT v.at, v.outcome, v.effects, v.debug, coalesce(v.owner, s.owner, ''), r.key, r.call_id, r.body_hash, r.reply, c.doc FROM call_values v
		JOIN calls c USING (ns, call_id) LEFT JOIN sessions s ON (s.ns, s.id) = (v.ns, v.session)
		LEFT JOIN replies r ON r.ns = v.ns AND r.call_id = convert_to(v.call_id, 'UTF8') WHERE v.ns = $1 ORDER BY c.n`, func(row pgx.Row) (store.Item, error) {
		v, doc := &store.ItemValue{}, []byte(nil)
		if err := scanValue(row, v, &doc, &v.At, &v.Outcome, &v.Effects, &v.Debug, &v.Owner); err != nil {
			return store.Item{}, err
		}
		e, err := decodeCall(doc)
		v.CallID, v.SessionID, v.Owner = e.CallID, e.SessionID, agent.LoggedOwner(v.Owner)
		return store.Item{Value: v}, err
	}); err != nil {
		return err
	}
	return g.each(`SELECT r.at, r.session, coalesce(s.owner, ''), r.key, r.call_id, r.body_hash, r.reply, r.call_id FROM replies r
		LEFT JOIN sessions s ON (s.ns, s.id) = (r.ns, r.session) WHERE r.ns = $1
		AND NOT EXISTS (SELECT 1 FROM call_values v JOIN calls c USING (ns, call_id) WHERE v.ns = r.ns AND convert_to(v.call_id, 'UTF8') = r.call_id) ORDER BY at, key`, func(row pgx.Row) (store.Item, error) {
		v, id := &store.ItemValue{}, []byte(nil)
		err := scanValue(row, v, &id, &v.At, &v.SessionID, &v.Owner)
		v.CallID, v.Owner = string(id), agent.LoggedOwner(v.Owner)
		return store.Item{Value: v}, err
	})
}

// scanValue reads a row: the columns before, those of a reply, which may be NULL, and the column last.
func scanValue(row pgx.Row, v *store.ItemValue, last *[]byte, before ...any) error {
	var name *string
	var call, hash, reply []byte
	err := row.Scan(append(before, &name, &call, &hash, &reply, last)...)
	if name != nil {
		v.Key = &store.Idempotent{Key: *name, CallID: string(call), BodyHash: string(hash), Reply: reply}
	}
	return err
}

// learned passes on what was derived from calls: patterns, evidence, contents, spending.
func (g *giver) learned() error {
	if err := g.each("SELECT doc FROM patterns WHERE ns = $1 ORDER BY role, n",
		document(func(p *agent.PatternEvent) store.Item { return store.Item{Pattern: p} })); err != nil {
		return err
	}
	if err := g.each("SELECT doc FROM evidence WHERE ns = $1 ORDER BY role, method",
		document(func(m *agent.MethodEvidence) store.Item { return store.Item{Evidence: m} })); err != nil {
		return err
	}
	if err := g.each("SELECT ref, sessions, value FROM contents WHERE ns = $1 ORDER BY used",
		func(row pgx.Row) (store.Item, error) {
			k := &store.Kept{}
			return store.Item{Content: k}, row.Scan(&k.Ref, &k.Sessions, &k.Value)
		}); err != nil {
		return err
	}
	spent, err := readSpent(g.ctx, g, g.ns, math.MinInt32, math.MaxInt32)
	if err != nil {
		return err
	}
	return g.item(store.Item{Spent: &spent})
}

func (g *giver) files() error {
	rows, err := g.Query(g.ctx, "SELECT blob, doc FROM files WHERE ns = $1 ORDER BY id", g.ns)
	if err != nil {
		return err
	}
	type row struct {
		blob int64
		doc  []byte
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x row, err error) {
		return x,
			r.Scan(&x.blob, &x.doc)
	})
	if err != nil {
		return err
	}
	for _, x := range list {
		f := &store.ItemFile{Open: func() (io.ReadCloser,
			error) {
			return io.NopCloser(&pieceReader{g: g, blob: x.blob}), nil
		}}
		if err := json.Unmarshal(x.doc, &f.File); err != nil {
			return err
		}
		if err := g.item(store.Item{File: f}); err != nil {
			return err
		}
	}
	return nil
}

func (g *giver) audit() error {
	return g.each("SELECT line FROM audit WHERE ns = $1 ORDER BY n",
		func(row pgx.Row) (x store.Item, err error) { return x, row.Scan(&x.Audit) })
}

// pieceReader reads the pieces of a blob in order.
type pieceReader struct {
	g    *giver
	blob int64
	next int
	data []byte
}

// Read implements io.Reader. A blob ends where a piece is missing.
func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		rows, err := r.g.Query(r.g.ctx, "SELECT data FROM pieces WHERE blob = $1 AND n = $2", r.blob, r.next)
		if err != nil {
			return 0, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
		if err != nil {
			return 0, err
		}
		if len(found) == 0 {
			return 0, io.EOF
		}
		r.data, r.next = found[0], r.next+1
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

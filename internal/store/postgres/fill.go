package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Fill fills an empty store with the items that each passes to give. It adds all of them or, if it fails, none.
// store.ErrExists if the store is not empty; store.ErrInUse if replicas use it.
func (s *Store) Fill(ctx context.Context, each func(give func(*store.Item) error) error) error {
	err := s.onceWith(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := refuseFilled(ctx, tx); err != nil {
			return err
		}
		f := &filler{Tx: tx, ctx: ctx, s: s, b: &pgx.Batch{}, owners: map[string]string{}}
		if err := each(f.take); err != nil {
			return err
		}
		return f.finish()
	})
	return unavailable(err)
}

// fillNamespace adds a namespace with the items that each passes to give. It may call each more than once.
func (s *Store) fillNamespace(ctx context.Context, name agent.Namespace, audit *agent.AuditEntry,
	each func(give func(*store.Item) error) error) error {
	trail, err := s.Space(agent.DefaultNamespace)
	if err != nil {
		return err
	}
	return unavailable(trail.change(ctx, func(ctx context.Context, c *change) error {
		tag, err := c.Exec(ctx, freshSpace+" ON CONFLICT (name) DO NOTHING", string(name), nil)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("%w: namespace %s", store.ErrExists, name)
		}
		f := &filler{Tx: c.Tx, ctx: ctx, s: s, b: &pgx.Batch{}, owners: map[string]string{}}
		if err := each(f.take); err != nil {
			return err
		}
		if err := f.finish(); err != nil {
			return err
		}
		// readers that looked before the import have cached that there is nothing
		c.feed = append(c.feed, store.Change{Namespace: name, Kind: store.ChangedNamespace,
			Name: store.ImportedNamespace})
		return c.audit(ctx, audit)
	}))
}

// onceWith runs do in one transaction without a time limit.
func (s *Store) onceWith(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return do(ctx, tx) })
}

// refuseFilled keeps others from filling the store at the same time. It returns an error if the store holds data or if
// replicas use it, because they have already read that it is empty.
func refuseFilled(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "LOCK TABLE namespaces, sessions, tools, calls, audit IN EXCLUSIVE MODE"); err != nil {
		return err
	}
	for _, table := range append([]string{"blobs"}, spaceTables...) {
		var filled bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+table+")").Scan(&filled); err != nil {
			return err
		}
		if filled {
			return fmt.Errorf("%w: the database is not empty: it has rows in %s; copy into an empty database",
				store.ErrExists, table)
		}
	}
	var replicas int
	if err := tx.QueryRow(ctx,
		"SELECT count(*) FROM replicas WHERE expires_at > clock_timestamp()").Scan(&replicas); err != nil {
		return err
	}
	if replicas > 0 {
		return fmt.Errorf("%w: %d replicas use the database, or did so moments ago; stop them, and start them on the "+
			"copy",
			store.ErrInUse, replicas)
	}
	var others int
	if err := tx.QueryRow(ctx,
		"SELECT count(*) FROM namespaces WHERE name <> 'default'").Scan(&others); err != nil || others == 0 {
		return err
	}
	return fmt.Errorf("%w: the database has %d namespaces besides the default one; copy into an empty database",
		store.ErrExists, others)
}

// filler writes items in batches. It lives for one transaction.
type filler struct {
	pgx.Tx
	ctx context.Context // context of the transaction
	s   *Store
	b   *pgx.Batch

	name   agent.Namespace
	ns     int64
	owners map[string]string // by session id of the namespace
	places int64             // entries of the call log so far
	trail  *chain.Verifier
	lines  int64       // lines of the trail written by an earlier version
	ranks  rankChanges // written when the namespace is finished
}

const (
	fillTogether = 500      // queued rows per batch
	oldestPlace  = -1 << 60 // place of the first copied log entry, below every place of a later commit
	oldestLine   = -1 << 40 // number below those of lines from an earlier version, which are at most 0
)

// take writes an item.
func (f *filler) take(x *store.Item) error {
	var err error
	switch {
	case x.Space != nil:
		return f.space(x.Space)
	case x.Policy != nil:
		f.b.Queue("INSERT INTO policies (ns, revision, doc) VALUES ($1, $2, $3)", f.ns, x.Policy.Revision,
			[]byte(x.Policy.Policy))
	case x.Connection != nil:
		err = f.document("INSERT INTO connections (ns, name, revision, doc) VALUES ($1, $2, $3, $4)", x.Connection,
			key(x.Connection.Name), x.Connection.Revision)
	case x.Tool != nil:
		f.ranks.tool(f.ns, x.Tool)
		err = queueTool(f.b, f.ns, x.Tool)
	case x.Artifact != nil:
		g := &groupArtifact{}
		g.set(x.Artifact)
		f.ranks.artifact(f.ns, x.Artifact.Role, nil, x.Artifact)
		err = writeArtifacts(f.b, map[rowKey]*groupArtifact{methodKey(f.ns, x.Artifact.Role, x.Artifact.MethodName): g})
	case x.Archived != nil:
		err = f.archived(x.Archived)
	case x.Program != nil:
		f.b.Queue("INSERT INTO programs (ns, checksum, code) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", f.ns,
			key(agent.Checksum(*x.Program)), []byte(*x.Program))
	case x.File != nil:
		err = f.file(x.File)
	case x.Spent != nil:
		err = f.spent(x.Spent)
	case x.Audit != nil:
		err = f.audit(x.Audit)
	default:
		err = f.call(x)
	}
	if err != nil || f.b.Len() < fillTogether {
		return err
	}
	return f.send()
}

// call writes an item of a session or of calls.
func (f *filler) call(x *store.Item) error {
	switch {
	case x.Session != nil:
		return f.session(x.Session)
	case x.Record != nil:
		return f.record(x.Record)
	case x.Call != nil:
		return f.log(x.Call)
	case x.Value != nil:
		f.value(x.Value)
	case x.Pattern != nil:
		return f.document("INSERT INTO patterns (ns, role, session, doc) VALUES ($1, $2, $3, $4)", x.Pattern,
			key(x.Pattern.Role), key(x.Pattern.SessionID))
	case x.Evidence != nil:
		m := x.Evidence
		return f.document("INSERT INTO evidence (ns, role, method, version, last, weight, remarkable, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", m,
			key(m.Role), key(m.Method), newVersion(), key(m.Last), len(m.Notes)+len(m.Plain), len(m.Notes) > 0 ||
				m.Judged)
	case x.Content != nil:
		f.b.Queue("INSERT INTO contents (ns, ref, used, sessions, value) VALUES ($1, $2, nextval('content_order'), $3, $4)", f.ns, key(x.Content.Ref), keys(x.Content.Sessions), []byte(x.Content.Value))
	default:
		return errors.New("an item holds nothing that this version knows")
	}
	return nil
}

// document queues a row whose last column is the JSON of doc.
func (f *filler) document(sql string, doc any, columns ...any) error {
	text, err := json.Marshal(doc)
	f.b.Queue(sql, append(append([]any{f.ns}, columns...), text)...)
	return err
}

func (f *filler) send() error {
	b := f.b
	f.b = &pgx.Batch{}
	return f.SendBatch(f.ctx, b).Close()
}

// space finishes the previous namespace and starts the next.
func (f *filler) space(info *store.NamespaceInfo) error {
	if err := f.finish(); err != nil {
		return err
	}
	f.name, f.lines, f.trail, f.ranks = info.Name, 0, chain.NewVerifier(info.Name, nil), rankChanges{}
	clear(f.owners)
	return f.QueryRow(f.ctx, freshSpace+
		" ON CONFLICT (name) DO UPDATE SET created_at = excluded.created_at RETURNING id",
		string(info.Name), timeOrNull(info.CreatedAt)).Scan(&f.ns)
}

// finish writes what is derived from all items of a namespace: the head of the audit trail and the ranks.
func (f *filler) finish() error {
	if f.trail == nil {
		return nil
	}
	if f.trail.Entries+f.trail.Earlier > 0 {
		head := f.trail.Next()
		f.b.Queue("INSERT INTO audit_heads (ns, seq, hash) VALUES ($1, $2, $3)", f.ns, head.Seq, head.Hash)
	}
	f.ranks.queue(f.b, f.s.o.Now())
	return f.send()
}

func (f *filler) archived(x *store.ItemArchived) error {
	t, doc := store.Target{}, any(x.Tool)
	if x.Tool != nil {
		t.Role = x.Tool.Role
	} else {
		t.Role, t.Method, doc = x.Artifact.Role, x.Artifact.MethodName, x.Artifact
	}
	return f.document("INSERT INTO archive (ns, role, method, tool, by, at, deleted, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", doc, key(t.Role), key(t.Method), x.Tool != nil, key(x.By), x.At, x.Deleted)
}

// session writes a session with its context, and remembers its owner for the calls that follow.
func (f *filler) session(x *store.ItemSession) error {
	s := x.Session
	f.owners[s.ID] = key(owner(&s))
	size, revision, updated := s.HistorySize, s.Revision, s.UpdatedAt
	s.HistorySize, s.Revision, s.UpdatedAt = 0, 0, time.Time{} // these are columns of their own
	if err := f.document(`INSERT INTO sessions (ns, id, owner, ephemeral, updated_at, history_size, revision, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, &s,
		key(s.ID), f.owners[s.ID], ids.Ephemeral(s.ID), updated, size, revision); err != nil {
		return err
	}
	queueContext(f.b, f.ns, s.ID, &agent.ContextChange{Set: x.Context})
	return nil
}

func (f *filler) record(x *store.ItemRecord) error {
	var r agent.Record
	if err := json.Unmarshal(x.Record, &r); err != nil {
		return fmt.Errorf("a record of session %s: %w", x.SessionID, err)
	}
	f.b.Queue("INSERT INTO records (ns, session, seq, call_id, role, method, status, depth, at, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)", f.ns, key(x.SessionID), r.Seq,
		key(r.CallID), key(r.Role), key(r.MethodName), key(r.OutcomeSummary.Status), r.Depth, stamp(r.Timestamp),
		[]byte(x.Record))
	return nil
}

// log writes an entry of the call log, after the previous ones.
func (f *filler) log(doc json.RawMessage) error {
	var e agent.LogEntry
	if err := json.Unmarshal(doc, &e); err != nil {
		return fmt.Errorf("an entry of the call log: %w", err)
	}
	x := &callRow{ns: f.ns, log: &e, encodedLog: doc}
	if o, known := f.owners[e.SessionID]; known {
		x.session = &groupSession{keptSession: keptSession{owner: o}}
	}
	// The order of the log is kept by places below those of later commits.
	f.places++
	f.b.Queue(`INSERT INTO calls (ns, call_id, n, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT DO NOTHING`,
		f.ns, key(e.CallID), oldestPlace+f.places, key(e.SessionID), key(e.RootCallID), key(e.ParentCallID),
		key(e.TraceID), key(e.Role), key(e.Method), key(e.OutcomeStatus),
		key(e.OutcomeErrorType), key(e.ProgramSource), e.WeakSuccess, e.HistoryAccessDetected, store.HoldsValues(&e),
		x.owner(&e), e.Owner != "",
		stamp(e.Timestamp), []byte(doc))
	if ref := e.UserCorrectionReferenceCallID; ref != "" {
		queueCorrection(f.b, f.ns, ref, e.CallID, "DEFAULT")
	}
	return nil
}

// value writes what is kept of a call for a limited time. Either part may be missing.
func (f *filler) value(x *store.ItemValue) {
	if x.Outcome != nil || x.Effects != nil {
		var owner *string
		if x.Owner != "" {
			owner = new(key(x.Owner))
		}
		f.b.Queue("INSERT INTO call_values (ns, call_id, session, at, outcome, effects, owner, debug) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
			f.ns, key(x.CallID), key(x.SessionID), x.At, []byte(x.Outcome), []byte(x.Effects), owner, x.Debug)
	}
	if k := x.Key; k != nil {
		f.b.Queue("INSERT INTO replies (ns, key, session, at, call_id, body_hash, reply) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (ns, key) DO UPDATE SET reply = excluded.reply, at = excluded.at",
			f.ns, key(k.Key), key(x.SessionID), x.At, []byte(k.CallID), []byte(k.BodyHash), []byte(k.Reply))
	}
}

func (f *filler) spent(s *store.Spent) error {
	if err := queueSpent(f.b, f.ns, s.Rows); err != nil {
		return err
	}
	for i := range s.Open {
		if err := queueOpen(f.b, f.ns, &s.Open[i]); err != nil {
			return err
		}
	}
	for i := range s.Forges {
		r := &s.Forges[i]
		if err := f.document("INSERT INTO spend_forges (ns, hash, doc) VALUES ($1, $2, $3)", r,
			rowHash(r.Role, r.Method, r.Model)); err != nil {
			return err
		}
	}
	return nil
}

// file writes a file with its bytes.
func (f *filler) file(x *store.ItemFile) error {
	in, err := x.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	var blob int64
	if err := f.QueryRow(f.ctx, "INSERT INTO blobs (id, ns, file) VALUES (nextval('blob_ids'), $1, $2) RETURNING id",
		f.ns, key(x.ID)).Scan(&blob); err != nil {
		return err
	}
	buf, size := make([]byte, pieceBytes), int64(0)
	for n := 0; ; n++ {
		k, err := io.ReadFull(in, buf)
		if k > 0 {
			size += int64(k)
			if _, err := f.Exec(f.ctx, "INSERT INTO pieces (blob, n, data) VALUES ($1, $2, $3)", blob, n,
				buf[:k]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if size != x.Bytes {
		return fmt.Errorf("file %s has %d bytes, not %d", x.ID, size, x.Bytes)
	}
	return f.document("INSERT INTO files (ns, id, owner, session, internal, bytes, expires_at, blob, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", &x.File,
		key(x.ID), key(x.Owner), key(x.SessionID), x.Internal, x.Bytes, timeOrNull(x.ExpiresAt), blob)
}

// audit writes a line of the trail unchanged, except for the padding of an erased entry.
func (f *filler) audit(line json.RawMessage) error {
	var e agent.AuditEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("line %d of the audit trail: %w", f.trail.Entries+f.trail.Earlier+1, err)
	}
	n := e.Seq
	if e.Hash == "" {
		f.lines++
		n = oldestLine + f.lines
	}
	if e.Erased {
		line = bytes.TrimRight(line, " ")
	}
	f.trail.Add(line)
	f.b.Queue("INSERT INTO audit (ns, n, id, session, line) VALUES ($1, $2, $3, $4, $5)", f.ns, n, key(e.ID),
		key(e.SessionID), []byte(line))
	return nil
}

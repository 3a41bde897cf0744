package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// errNoDraft rejects a draft that the sweep has removed while this replica was cut off.
var errNoDraft = fmt.Errorf(
	"%w: what was written of the file; this replica was cut off from the database for too long, or the namespace was deleted", store.ErrGone)

// sealDrafts writes the last piece of each draft. It must precede the transaction that makes them files.
func sealDrafts(files []store.NewFile) error {
	for i := range files {
		d, ok := files[i].Draft.(*draft)
		if !ok || d.ended {
			return fmt.Errorf("file %s has no draft", files[i].ID)
		}
		if err := d.flush(); err != nil {
			return err
		}
	}
	return nil
}

// endDrafts releases drafts that have become files, and discards them if they have not.
func endDrafts(files []store.NewFile, kept bool) {
	for i := range files {
		d, ok := files[i].Draft.(*draft)
		if ok && kept {
			d.end()
		} else {
			files[i].Draft.Discard()
		}
	}
}

// queueFiles makes sealed drafts files. If a draft is gone, the first statement's result is errNoDraft and the database
// rejects the second statement, so a COMMIT in the same batch changes nothing.
func queueFiles(b *pgx.Batch, ns int64, files []store.NewFile) error {
	for i := range files {
		f, d := files[i].File, files[i].Draft.(*draft) // sealDrafts has checked the type
		doc, err := json.Marshal(&f)
		if err != nil {
			return err
		}
		b.Queue("UPDATE blobs SET file = $3 WHERE id = $1 AND ns = $2 AND file IS NULL", d.blob, ns,
			key(f.ID)).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return errNoDraft
			}
			return nil
		})
		b.Queue(`INSERT INTO files (ns, id, owner, session, internal, bytes, expires_at, blob, doc)
			VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT id FROM blobs WHERE id = $8 AND file = $2), $9)`,
			ns, key(f.ID), key(f.Owner), key(f.SessionID), f.Internal, f.Bytes, timeOrNull(f.ExpiresAt), d.blob, doc)
		b.Queue("DELETE FROM pins WHERE blob = $1 AND id = $2", d.blob, d.pin)
	}
	return nil
}

// timeOrNull returns nil, which is NULL, for the zero time.
func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// AddFile implements store.Namespace.
func (n *Namespace) AddFile(ctx context.Context, f store.NewFile) error {
	files := []store.NewFile{f}
	err := sealDrafts(files)
	if err == nil {
		err = n.change(ctx, func(ctx context.Context, c *change) error {
			if f.SessionID != "" {
				var one int
				if err := c.QueryRow(ctx, "SELECT 1 FROM sessions WHERE ns = $1 AND id = $2 FOR KEY SHARE", c.ns,
					key(f.SessionID)).Scan(&one); err != nil {
					return err
				}
			}
			b := &pgx.Batch{}
			if err := queueFiles(b, c.ns, files); err != nil {
				return err
			}
			return c.send(ctx, b)
		})
	}
	endDrafts(files, err == nil)
	return n.freeing(err)
}

// File implements store.Namespace.
func (n *Namespace) File(ctx context.Context, id string) (f agent.File, err error) {
	f, _, err = n.file(ctx, id)
	return f, err
}

func (n *Namespace) file(ctx context.Context, id string) (f agent.File, blob int64, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		var doc []byte
		if err := n.store.pool.QueryRow(ctx, "SELECT blob, doc FROM files WHERE ns = $1 AND id = $2", ns,
			key(id)).Scan(&blob, &doc); err != nil {
			return err
		}
		return json.Unmarshal(doc, &f)
	})
	if err == nil && f.Expired(n.store.o.Now()) {
		return agent.File{}, 0, store.ErrNotFound
	}
	return f, blob, err
}

// OpenFile implements store.Namespace. A file of one piece is read at once. A pin keeps a longer one until it is
// closed.
func (n *Namespace) OpenFile(ctx context.Context, id string) (store.FileReader, error) {
	f, blob, err := n.file(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &reader{s: n.store, blob: blob, size: f.Bytes, n: -1}
	if f.Bytes <= pieceBytes {
		if f.Bytes > 0 {
			if _, err = r.piece(0); errors.Is(err, store.ErrGone) {
				err = store.ErrNotFound // deleted meanwhile
			}
		}
		return r, err
	}
	// FOR SHARE waits for a deletion in progress; a later deletion sees the pin.
	err = n.store.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `INSERT INTO pins (blob, id, expires_at) SELECT id, nextval('blob_ids'), clock_timestamp() + $2
			FROM blobs WHERE id = $1 AND file IS NOT NULL FOR SHARE RETURNING id`, blob, pinLife).Scan(&r.pin)
	})
	if err != nil {
		return nil, err
	}
	n.store.pins.add(r.pin, blob)
	return r, nil
}

// ListFiles implements store.Namespace.
func (n *Namespace) ListFiles(ctx context.Context, owner, after string, limit int) (out []agent.File, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		rows, err := n.store.pool.Query(ctx,
			`SELECT doc FROM files WHERE ns = $1 AND owner = $2 AND NOT internal AND ($3 = '' OR id < $3)
			AND (expires_at IS NULL OR expires_at > $4) ORDER BY id DESC LIMIT $5`, ns, key(owner), key(after), n.store.o.Now(), limit)
		if err != nil {
			return err
		}
		out, err = pgx.AppendRows([]agent.File(nil), rows, func(row pgx.CollectableRow) (f agent.File, err error) {
			var doc []byte
			if err := row.Scan(&doc); err != nil {
				return f, err
			}
			return f, json.Unmarshal(doc, &f)
		})
		return err
	})
	return out, err
}

// FileBytes implements store.Namespace. Triggers on files maintain the sums.
func (n *Namespace) FileBytes(ctx context.Context, owner, session string) (own, all int64, err error) {
	err = n.read(ctx, func(ctx context.Context, ns int64) error {
		return n.store.pool.QueryRow(ctx,
			`SELECT coalesce((SELECT bytes FROM file_bytes WHERE ns = $1 AND holder = file_holder($3, $2)), 0), coalesce((SELECT sum(bytes) FROM file_totals), 0)::int8`,
			ns, key(owner), key(session)).Scan(&own, &all)
	})
	return own, all, err
}

// DeleteFile implements store.Namespace.
func (n *Namespace) DeleteFile(ctx context.Context, id string, audit *agent.AuditEntry) error {
	return n.freeing(n.change(ctx, func(ctx context.Context, c *change) error {
		var one int
		if err := c.QueryRow(ctx, "SELECT 1 FROM files WHERE ns = $1 AND id = $2 FOR UPDATE", c.ns,
			key(id)).Scan(&one); err != nil {
			return err
		}
		if err := c.loosenFiles(ctx, []string{key(id)}); err != nil {
			return err
		}
		return c.audit(ctx, audit)
	}))
}

// fullError wraps an error for a full disk in store.ErrFull.
func fullError(err error) error {
	const diskFull = "53100"
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == diskFull {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}

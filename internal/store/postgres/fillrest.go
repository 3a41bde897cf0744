package postgres

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

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

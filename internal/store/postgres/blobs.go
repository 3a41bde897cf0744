package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/store"
)

const (
	pieceBytes = 256 << 10 // size of one row of a file's bytes
	sweepEvery = 10 * time.Minute
	pinTimeout = 10 * time.Second // for work on a draft, which has no context of its own
)

// sweepNowAndThen sweeps periodically until ctx ends. All replicas do so; sweeping twice does no harm.
func (s *Store) sweepNowAndThen(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.o.Logger.Debug().Err(err).Msg("what nobody needs waits for the next sweep")
			}
		}
	}
}

// sweep removes the unfinished files of processes that ended, changes older than FeedAge, expired leases and
// candidates, and chunks of caps that are over or whose replica is dead.
func (s *Store) sweep(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, looseBlobs); err != nil {
		return err
	}
	if _, err := s.pool.Exec(ctx, oldChanges, s.o.FeedAge.Microseconds()); err != nil {
		return err
	}
	for _, table := range []string{"leases", "candidates"} {
		if _, err := s.pool.Exec(ctx, "DELETE FROM "+table+
			" WHERE expires_at < clock_timestamp() - interval '1 minute'"); err != nil {
			return err
		}
	}
	_, err := s.pool.Exec(ctx, oldChunks)
	return err
}

// oldChunks removes chunks of caps whose days are over in every time zone, and chunks of dead replicas.
const oldChunks = `DELETE FROM spend_chunks WHERE (ns, cap, replica) IN (SELECT k.ns, k.cap, k.replica FROM spend_chunks k
	WHERE k.last < extract(epoch FROM clock_timestamp()) / 86400 - 2 OR NOT EXISTS (SELECT 1 FROM replicas r WHERE r.id = k.replica AND r.expires_at > clock_timestamp())
	FOR UPDATE OF k SKIP LOCKED)`

// oldChanges removes old changes and raises the floor to the last one removed. Cursors below the floor are gone.
const oldChanges = `WITH old AS (DELETE FROM feed WHERE at < clock_timestamp() - $1 * interval '1 microsecond' AND xid < pg_snapshot_xmin(pg_current_snapshot()) RETURNING xid, n),
	last AS (SELECT xid, n FROM old ORDER BY xid DESC, n DESC LIMIT 1)
	UPDATE feed_floor f SET xid = last.xid, n = last.n FROM last WHERE (f.xid, f.n) < (last.xid, last.n)`

// loosen removes files. Their bytes go at once, unless a reader has pinned them. holdBlobs must run before it as a
// separate statement: loosen then sees all earlier pins, and later readers wait.
const (
	holdBlobs = "SELECT 1 FROM files f JOIN blobs b ON b.id = f.blob WHERE f.ns = $1 AND f.id = ANY($2::text[]) ORDER BY b.id FOR UPDATE"
	loosen    = `WITH gone AS (DELETE FROM files WHERE ns = $1 AND id = ANY($2::text[]) RETURNING blob),
	held AS (UPDATE blobs b SET file = NULL FROM gone WHERE b.id = gone.blob AND EXISTS (SELECT 1 FROM pins p WHERE p.blob = b.id AND p.expires_at > clock_timestamp()) RETURNING b.id),
	freed AS (DELETE FROM blobs b USING gone WHERE b.id = gone.blob AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.blob = b.id AND p.expires_at > clock_timestamp()) RETURNING b.id)
	DELETE FROM pieces WHERE blob IN (SELECT id FROM freed)`
)

// loosenFiles removes the namespace's files with these keys.
func (c *change) loosenFiles(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	b := &pgx.Batch{}
	b.Queue(holdBlobs, c.ns, ids)
	b.Queue(loosen, c.ns, ids)
	return c.send(ctx, b)
}

// draft is a store.Draft whose rows are kept alive only by its pin.
type draft struct {
	n      *Namespace
	blob   int64
	pin    int64
	buf    []byte // the piece that is not full yet
	pieces int    // pieces written
	size   int64
	ended  bool    // it has become a file or was discarded
	back   *reader // reads the written pieces; nil until ReadAt needs it
}

// NewDraft implements store.Namespace.
func (n *Namespace) NewDraft() (store.Draft, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pinTimeout)
	defer cancel()
	d := &draft{n: n}
	err := n.change(ctx, func(ctx context.Context, c *change) error {
		// The blob and its pin appear together, so no sweep can find the blob without a pin.
		return c.QueryRow(ctx, `WITH made AS (INSERT INTO blobs (id, ns) VALUES (nextval('blob_ids'), $1) RETURNING id)
			INSERT INTO pins (blob, id, expires_at) SELECT id, nextval('blob_ids'), clock_timestamp() + $2 FROM made RETURNING blob, id`,
			c.ns, pinLife).Scan(&d.blob, &d.pin)
	})
	if err != nil {
		return nil, err
	}
	n.store.pins.add(d.pin, d.blob)
	return d, nil
}

// Write implements io.Writer. It buffers less than a piece and writes each full piece to the database. If that fails,
// it returns how much of data is kept, and the rest may be written again.
func (d *draft) Write(data []byte) (int, error) {
	if d.ended {
		return 0, fs.ErrClosed
	}
	written := 0
	for len(data) > 0 {
		if d.buf == nil {
			d.buf = make([]byte, 0, pieceBytes)
		}
		k := min(len(data), pieceBytes-len(d.buf))
		d.buf = append(d.buf, data[:k]...)
		if len(d.buf) == pieceBytes {
			if err := d.flush(); err != nil {
				d.buf = d.buf[:len(d.buf)-k]
				return written, err
			}
		}
		data, written, d.size = data[k:], written+k, d.size+int64(k)
	}
	return written, nil
}

// ReadAt implements store.Draft.
func (d *draft) ReadAt(p []byte, off int64) (read int, err error) {
	if d.ended {
		return 0, fs.ErrClosed
	}
	if d.back == nil {
		d.back = &reader{s: d.n.store, blob: d.blob, n: -1}
	}
	// Full pieces are in the database, the rest is in the buffer.
	d.back.size = int64(d.pieces) * pieceBytes
	if off < d.back.size {
		if read, err = d.back.ReadAt(p, off); err != io.EOF {
			return read, err
		}
	}
	n, err := bytes.NewReader(d.buf).ReadAt(p[read:], off+int64(read)-d.back.size)
	return read + n, err
}

// flush writes the current piece. It retries for as long as a call's commit is retried. Writing a piece twice is
// harmless.
func (d *draft) flush() error {
	if len(d.buf) == 0 {
		return nil
	}
	_, err := backoff.Retry(context.Background(), func() (struct{}, error) {
		err := d.write()
		if errors.Is(err, store.ErrAway) {
			return struct{}{}, err
		}
		return struct{}{}, permanent(err)
	}, backoff.WithBackOff(pace()), backoff.WithMaxElapsedTime(d.n.store.o.Retry))
	if err != nil {
		return fullError(final(context.Background(), err))
	}
	d.pieces++
	d.buf = d.buf[:0]
	return nil
}

// write makes one attempt to write the current piece.
func (d *draft) write() error {
	ctx, cancel := context.WithTimeout(context.Background(), pinTimeout)
	defer cancel()
	return d.n.store.read(ctx, func(ctx context.Context) error {
		// The row of the blob is missing if a sweep has removed the draft, and FOR KEY SHARE keeps it until the piece
		// is written.
		tag, err := d.n.store.pool.Exec(ctx,
			`INSERT INTO pieces (blob, n, data) SELECT id, $2, $3 FROM blobs WHERE id = $1 AND file IS NULL FOR KEY SHARE
			ON CONFLICT (blob, n) DO UPDATE SET data = excluded.data`, d.blob, d.pieces, d.buf)
		if err == nil && tag.RowsAffected() == 0 {
			err = errNoDraft
		}
		return err
	})
}

// Discard implements store.Draft.
func (d *draft) Discard() {
	if d.ended {
		return
	}
	d.end()
	ctx, cancel := context.WithTimeout(context.Background(), pinTimeout)
	defer cancel()
	d.n.store.unpin(ctx, d.blob, d.pin)
}

// end stops renewing the pin and drops the buffer.
func (d *draft) end() {
	d.ended, d.buf = true, nil
	d.n.store.pins.drop(d.pin)
}

// reader reads the pieces of a file. pin is 0 if nothing has to be released on Close.
type reader struct {
	s         *Store
	blob, pin int64
	size      int64

	close sync.Once
	mu    sync.Mutex
	n     int64  // number of the piece in data, -1 if none; guarded by mu, as is data
	data  []byte // a cache, so consecutive small reads take one query
}

// Version implements store.Versioned. The bytes of a blob never change.
func (r *reader) Version() string { return strconv.FormatInt(r.blob, 10) }

// ReadAt implements io.ReaderAt. It reports store.ErrGone if the bytes are gone.
func (r *reader) ReadAt(p []byte, off int64) (read int, err error) {
	if off < 0 {
		return 0, fs.ErrInvalid
	}
	for read < len(p) && off < r.size {
		piece, err := r.piece(off / pieceBytes)
		if err != nil {
			return read, err
		}
		at := off % pieceBytes
		if at >= int64(len(piece)) {
			return read, fmt.Errorf("piece %d of a file is too short", off/pieceBytes)
		}
		k := copy(p[read:], piece[at:])
		read, off = read+k, off+int64(k)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

// piece returns one piece. Its content does not change any more.
func (r *reader) piece(n int64) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n == n {
		return r.data, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), pinTimeout)
	defer cancel()
	var data []byte
	err := r.s.read(ctx, func(ctx context.Context) error {
		return r.s.pool.QueryRow(ctx, "SELECT data FROM pieces WHERE blob = $1 AND n = $2", r.blob, n).Scan(&data)
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: the file's bytes", store.ErrGone)
	}
	if err == nil {
		r.n, r.data = n, data
	}
	return data, err
}

// Close implements store.FileReader.
func (r *reader) Close() error {
	r.close.Do(func() {
		if r.pin == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), pinTimeout)
		defer cancel()
		r.s.unpin(ctx, r.blob, r.pin)
	})
	return nil
}

var (
	_ store.Draft      = (*draft)(nil)
	_ store.FileReader = (*reader)(nil)
)

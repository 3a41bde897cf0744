package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	pinLife  = time.Minute
	pinEvery = pinLife / 4
)

// pins are the blobs that this store keeps alive: drafts being written and files being read. They are renewed while the
// process lives. The next sweep releases those of a process that ended.
type pins struct {
	mu   sync.Mutex
	held map[int64]int64 // pin to blob; guarded by mu
}

func (p *pins) add(pin, blob int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = map[int64]int64{}
	}
	p.held[pin] = blob
}

func (p *pins) drop(pin int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, pin)
}

func (p *pins) all() (ids, blobs []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pin, blob := range p.held {
		ids, blobs = append(ids, pin), append(blobs, blob)
	}
	return ids, blobs
}

// renewPins extends the life of this store's pins.
func (s *Store) renewPins(ctx context.Context) {
	ids, blobs := s.pins.all()
	if len(ids) == 0 {
		return
	}
	_, err := s.pool.Exec(ctx,
		`UPDATE pins SET expires_at = clock_timestamp() + $3 FROM unnest($1::int8[], $2::int8[]) AS held(id, blob)
		WHERE pins.id = held.id AND pins.blob = held.blob`, ids, blobs, pinLife)
	if err != nil && ctx.Err() == nil {
		s.o.Logger.Warn().Err(err).Msg("what is held of files was not renewed")
	}
}

// looseBlobs removes expired pins, and blobs that belong to no file and have no pin.
const looseBlobs = `WITH dead AS (DELETE FROM pins WHERE expires_at <= clock_timestamp() RETURNING blob, id),
	loose AS (DELETE FROM blobs b WHERE file IS NULL AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.blob = b.id AND p.expires_at > clock_timestamp()) RETURNING id)
	DELETE FROM pieces WHERE blob IN (SELECT id FROM loose)`

// unpin releases a blob and removes its bytes if nothing else holds them. If that fails, the next sweep does it.
func (s *Store) unpin(ctx context.Context, blob, pin int64) {
	s.pins.drop(pin)
	b := &pgx.Batch{}
	b.Queue("DELETE FROM pins WHERE blob = $1 AND id = $2", blob, pin)
	b.Queue(`WITH freed AS (DELETE FROM blobs b WHERE id = $1 AND file IS NULL AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.blob = b.id AND p.expires_at > clock_timestamp()) RETURNING id)
		DELETE FROM pieces WHERE blob IN (SELECT id FROM freed)`, blob)
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		s.o.Logger.Debug().Err(err).Msg("bytes that nobody needs wait for the next sweep")
	}
}

package postgres

import (
	"io"

	"github.com/jackc/pgx/v5"
)

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

package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Queries of a database that was restored from a dump: its transactions are counted anew, so that places of calls and of changes may lie ahead
// of those that are given now.
const (
	// raiseEra puts the places of later calls behind those of the dump.
	raiseEra = `UPDATE era SET added = newest.place - pg_current_xact_id()::text::int8 + 1 FROM (SELECT max(c.n) >> 20 AS place
			FROM namespaces s, LATERAL (SELECT n FROM calls WHERE ns = s.id ORDER BY n DESC LIMIT 1) AS c) AS newest
		WHERE newest.place >= pg_current_xact_id()::text::int8 + added`
	// dropAhead drops the changes of the dump: nobody who read them is there any more.
	dropAhead = "DELETE FROM feed WHERE xid > pg_current_xact_id()"
	// lowerFloor lets readers begin in the new count; cursors of the old one stay gone.
	lowerFloor = "UPDATE feed_floor SET xid = pg_current_xact_id(), n = 0 WHERE xid > pg_current_xact_id()"
)

// afterRestore has a database go on that was restored from a dump. Any other one it leaves as it is.
func (s *Store) afterRestore(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("SELECT added FROM era FOR UPDATE") // one replica after the other
		b.Queue(raiseEra)
		b.Queue(dropAhead)
		b.Queue(lowerFloor)
		return tx.SendBatch(ctx, b).Close()
	})
}

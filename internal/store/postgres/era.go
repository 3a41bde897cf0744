package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Queries for a database that was restored from a dump. Its transaction ids start again, so stored places of calls and
// changes may be ahead of new ones.
const (
	// raiseEra moves the places of later calls past those of the dump.
	raiseEra = `UPDATE era SET added = newest.place - pg_current_xact_id()::text::int8 + 1 FROM (SELECT max(c.n) >> 20 AS place
			FROM namespaces s, LATERAL (SELECT n FROM calls WHERE ns = s.id ORDER BY n DESC LIMIT 1) AS c) AS newest
		WHERE newest.place >= pg_current_xact_id()::text::int8 + added`
	// dropAhead deletes the changes of the dump, because no reader of them is left.
	dropAhead = "DELETE FROM feed WHERE xid > pg_current_xact_id()"
	// lowerFloor lets readers start with the new transaction ids. Old cursors stay invalid.
	lowerFloor = "UPDATE feed_floor SET xid = pg_current_xact_id(), n = 0 WHERE xid > pg_current_xact_id()"
)

// afterRestore prepares a database that was restored from a dump. It does not change other databases.
func (s *Store) afterRestore(ctx context.Context) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("SELECT added FROM era FOR UPDATE") // serializes replicas
		b.Queue(raiseEra)
		b.Queue(dropAhead)
		b.Queue(lowerFloor)
		return tx.SendBatch(ctx, b).Close()
	})
}

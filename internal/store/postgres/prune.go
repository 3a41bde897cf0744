package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// noteUnreferenced records since when no artifact, in use or archived, has referred to a program. It clears the
	// time if one refers to the program again.
	noteUnreferenced = `WITH used AS MATERIALIZED (SELECT DISTINCT found[1] AS checksum FROM (SELECT head AS doc FROM artifacts WHERE ns = $1
			UNION ALL SELECT body FROM artifact_bodies WHERE ns = $1 UNION ALL SELECT doc FROM archive WHERE ns = $1) AS docs,
			regexp_matches(encode(doc, 'escape'), 'sha256:[0-9a-f]{64}', 'g') AS found)
		UPDATE programs p SET unreferenced = CASE WHEN u.checksum IS NULL THEN $2::timestamptz END FROM programs q LEFT JOIN used u USING (checksum)
		WHERE p.ns = $1 AND q.ns = $1 AND q.checksum = p.checksum AND (p.unreferenced IS NULL) = (u.checksum IS NULL)`
	// dropPrograms removes programs that no call in the log can refer to either, because the log does not reach back to
	// the last reference by an artifact.
	dropPrograms = "DELETE FROM programs WHERE ns = $1 AND unreferenced < (SELECT at FROM calls WHERE ns = $1 ORDER BY n LIMIT 1) - $2::interval"
)

// commitSlack is the maximum time between a call's use of a program and its log entry.
const commitSlack = 2 * time.Hour

// prunePrograms removes the programs that neither artifacts nor the call log refer to.
func (c *change) prunePrograms(ctx context.Context, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(noteUnreferenced, c.ns, now)
	b.Queue(dropPrograms, c.ns, commitSlack)
	return c.send(ctx, b)
}

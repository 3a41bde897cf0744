package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// noteUnreferenced notes since when no artifact, in use or archived, refers to a program, and forgets it of those that one refers to again.
	noteUnreferenced = `WITH used AS MATERIALIZED (SELECT DISTINCT found[1] AS checksum FROM (SELECT head AS doc FROM artifacts WHERE ns = $1
			UNION ALL SELECT body FROM artifact_bodies WHERE ns = $1 UNION ALL SELECT doc FROM archive WHERE ns = $1) AS docs,
			regexp_matches(encode(doc, 'escape'), 'sha256:[0-9a-f]{64}', 'g') AS found)
		UPDATE programs p SET unreferenced = CASE WHEN u.checksum IS NULL THEN $2::timestamptz END FROM programs q LEFT JOIN used u USING (checksum)
		WHERE p.ns = $1 AND q.ns = $1 AND q.checksum = p.checksum AND (p.unreferenced IS NULL) = (u.checksum IS NULL)`
	// dropPrograms removes those that no call in the log can refer to either: it does not reach back to when an artifact did.
	dropPrograms = "DELETE FROM programs WHERE ns = $1 AND unreferenced < (SELECT at FROM calls WHERE ns = $1 ORDER BY n LIMIT 1) - $2::interval"
)

// commitSlack is for how long a call may take until it is in the log, at most.
const commitSlack = 2 * time.Hour

// prunePrograms removes the texts that neither artifacts nor the call log refer to.
func (c *change) prunePrograms(ctx context.Context, now time.Time) error {
	b := &pgx.Batch{}
	b.Queue(noteUnreferenced, c.ns, now)
	b.Queue(dropPrograms, c.ns, commitSlack)
	return c.send(ctx, b)
}

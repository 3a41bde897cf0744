package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// writeCalls queues the entries of the call log. An entry's place consists of the transaction id and the entry's index
// within the transaction.
func (g *group) writeCalls(b *pgx.Batch) {
	var c callColumns
	for _, x := range g.rows {
		if x.log.CallID != "" {
			c.add(x)
		}
	}
	if len(c.docs) == 0 {
		return
	}
	// This repeats the expression of call_place, because a function would be planned again each time.
	b.Queue(`INSERT INTO calls (ns, call_id, n, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc)
		SELECT ns, call_id, (SELECT (pg_current_xact_id()::text::int8 + added) << 20 FROM era) + i, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc
		FROM unnest($1::int8[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[],
			$12::bool[], $13::bool[], $14::bool[], $15::text[], $16::bool[], $17::timestamptz[], $18::bytea[]) WITH ORDINALITY
			AS k(ns, call_id, session, root, parent, trace, role, method, status, error_type, source, weak, history_access, debug, owner, named, at, doc, i)`,
		c.ns, c.ids, c.sessions, c.roots, c.parents, c.traces, c.roles, c.methods, c.statuses, c.errors, c.sources,
		c.weak, c.history, c.debug, c.owners, c.named, c.at, c.docs)
}

// callColumns hold rows of calls as one slice per column.
type callColumns struct {
	ns                                        []int64
	ids, sessions, roots, parents, traces     []string
	roles, methods, statuses, errors, sources []string
	weak, history, debug, named               []bool
	owners                                    []*string
	at                                        []*time.Time
	docs                                      [][]byte
}

func (c *callColumns) add(x *callRow) {
	e := x.log
	c.ns, c.docs, c.at = append(c.ns, x.ns), append(c.docs, x.encodedLog), append(c.at, stamp(e.Timestamp))
	c.ids, c.sessions, c.roots = append(c.ids, key(e.CallID)), append(c.sessions, key(e.SessionID)),
		append(c.roots, key(e.RootCallID))
	c.parents, c.traces = append(c.parents, key(e.ParentCallID)), append(c.traces, key(e.TraceID))
	c.roles, c.methods, c.statuses = append(c.roles, key(e.Role)), append(c.methods, key(e.Method)),
		append(c.statuses, key(e.OutcomeStatus))
	c.errors, c.sources = append(c.errors, key(e.OutcomeErrorType)), append(c.sources, key(e.ProgramSource))
	c.weak, c.history = append(c.weak, e.WeakSuccess), append(c.history, e.HistoryAccessDetected)
	c.debug = append(c.debug, store.HoldsValues(e))
	c.named, c.owners = append(c.named, e.Owner != ""), append(c.owners, x.owner(e))
}

// owner returns the owner of the call: the one in its entry, otherwise that of its session. nil means nobody.
func (x *callRow) owner(e *agent.LogEntry) *string {
	if e.Owner != "" {
		named := key(e.Owner)
		return &named
	}
	if x.session != nil {
		return &x.session.owner
	}
	return nil
}

package api

import (
	"encoding/json"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// listCalls lists calls, newest first. Running calls of other replicas are included if the query asks for running
// calls.
func (s *server) listCalls(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit := q.limit()
	c := store.CallQuery{
		Before: q.cursor("call_"), Limit: limit + 1,
		SessionID: q.text("session_id"), Role: q.name("role"), Method: q.name("method"),
		Status: q.oneOf("status", agent.StatusOK, agent.StatusError, agent.StatusRunning),
		Source: q.oneOf("source", agent.SourceGenerated, agent.SourcePersisted, agent.SourceRepaired,
			agent.SourceNone),
		ErrorType: q.text("error_type"), TraceID: q.text("trace_id"), ParentCallID: q.text("parent_call_id"),
		WeakSuccess: q.boolean("weak_success"), HistoryAccess: q.boolean("history_access"), Since: q.time("since"),
		Until: q.time("until"), Owner: w.only(), Scan: w.scan(),
	}
	previews := q.flag("previews")
	if err := q.err(); err != nil {
		return err
	}
	entries, err := w.run.ListCalls(r.Context(), c)
	if err != nil {
		return err
	}
	w.cutEntries(entries)
	entries, more, err := s.withCallsElsewhere(w, r, &c, entries)
	if err != nil {
		return err
	}
	for i := range entries {
		fillLists(&entries[i])
	}
	if previews {
		if err := w.run.Preview(r.Context(), entries[:min(limit, len(entries))]); err != nil {
			return err
		}
	}
	// another replica has further calls, so the list goes on even if this page is not full
	if more && len(entries) > 0 {
		c.Scan.Next = entries[min(limit, len(entries))-1].CallID
	}
	return s.send(w, http.StatusOK, page(entries, limit,
		func(e agent.LogEntry) string { return e.CallID }).goesOn(c.Scan.Next))
}

// fillLists replaces nil lists by empty ones, so that clients never see null.
func fillLists(e *agent.LogEntry) {
	if e.Args == nil {
		e.Args = []json.RawMessage{}
	}
	if len(e.Kwargs) == 0 {
		e.Kwargs = json.RawMessage("{}")
	}
	if e.AttemptFailures == nil {
		e.AttemptFailures = []agent.AttemptFailure{}
	}
	for _, l := range []*[]string{&e.HistoryQueryPatterns, &e.CapabilityPatterns, &e.WeakSuccessReasons} {
		if *l == nil {
			*l = []string{}
		}
	}
}

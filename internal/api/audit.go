package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Audit is the audit trail that the interface needs from a runtime.
type Audit interface {
	Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error)
	AuditViews(ctx context.Context, entries []agent.AuditEntry) ([]operator.AuditView, error)
	AuditEntry(ctx context.Context, id string) (operator.AuditView, error)
	AuditHead(ctx context.Context) (chain.Head, error)
}

// headerAuditID is the header with the id of the audit entry that the request wrote.
const headerAuditID = "Recurgent-Audit-Id"

// headerAuditHead is the header with the head of the audit chain, for replies whose body has no place for it.
const headerAuditHead = "Recurgent-Audit-Head"

// getAudit lists the audit trail, newest first, or exports it as JSON Lines if the format or the Accept header asks for
// it.
func (s *server) getAudit(w *reply, r *http.Request) error {
	q := readQuery(r)
	lines := q.oneOf("format", "json", "jsonl") == "jsonl" || !q.values.Has("format") && wantsLines(r)
	limit, wanted := q.limit(), store.AuditQuery{Before: q.cursor("aud_"), Principal: q.text("principal"),
		Scan: &store.Scan{Most: maxScanned}}
	if err := q.err(); err != nil {
		return err
	}
	head, err := w.run.AuditHead(r.Context())
	if err != nil {
		return err
	}
	if lines {
		if !q.values.Has("limit") {
			// an export without a limit covers the whole trail
			limit = store.MaxTrail
		}
		return s.exportAudit(w, r, wanted, limit, head)
	}
	wanted.Limit = limit + 1
	entries, err := w.run.Audit(r.Context(), wanted)
	if err != nil {
		return err
	}
	l := page(entries, limit, func(e agent.AuditEntry) string { return store.AuditCursor(&e) }).goesOn(wanted.Scan.Next)
	views, err := w.run.AuditViews(r.Context(), l.Data)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, struct {
		list[operator.AuditView]
		Head chain.Head `json:"head"`
	}{list[operator.AuditView]{views, l.NextCursor}, head})
}

// getAuditEntry returns one entry of the audit trail.
func (s *server) getAuditEntry(w *reply, r *http.Request) error {
	id, ok := idParam(r, "id")
	if err := readQuery(r).err(); err != nil {
		return err
	}
	if !ok {
		return missing(store.ErrNotFound, "audit entry of that id")
	}
	v, err := w.run.AuditEntry(r.Context(), id)
	if err != nil {
		return missing(err, "audit entry of that id")
	}
	return s.send(w, http.StatusOK, v)
}

// exportAudit writes at most limit entries, newest first, as JSON lines in the format of the trail's file. It reads
// one page at a time. If a later page fails it breaks the connection, so that the client notices the missing rest.
func (s *server) exportAudit(w *reply, r *http.Request, q store.AuditQuery, limit int, head chain.Head) error {
	w.Header().Set(headerAuditHead, fmt.Sprintf("%d %s", head.Seq, head.Hash))
	for {
		q.Limit, q.Scan = min(limit, maxLimit), &store.Scan{Most: maxScanned}
		entries, err := w.run.Audit(r.Context(), q)
		if err == nil {
			err = s.writeEntries(w, entries)
		}
		if err != nil && w.status != 0 {
			s.log.Error().Err(err).Str("request_id", w.requestID).Msg("an export of the audit trail broke off")
			panic(http.ErrAbortHandler) // the only way of net/http to break the connection
		}
		limit -= len(entries)
		if len(entries) < q.Limit {
			q.Before = q.Scan.Next
		} else {
			q.Before = store.AuditCursor(&entries[len(entries)-1])
		}
		if err != nil || q.Before == "" || limit == 0 || r.Method == http.MethodHead {
			return err
		}
	}
}

// writeEntries writes entries as lines of the trail's file, whose hashes clients can verify.
func (s *server) writeEntries(w *reply, entries []agent.AuditEntry) error {
	lines := make([]json.RawMessage, len(entries))
	for i := range entries {
		var err error
		if lines[i], err = chain.Line(&entries[i]); err != nil {
			return err
		}
	}
	return s.writeLines(w, lines)
}

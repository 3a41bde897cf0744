package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Sessions are the operations on sessions that the interface needs from a runtime.
type Sessions interface {
	CreateSession(ctx context.Context, q sessions.Request) (agent.Session, error)
	// Session, as all readers do, may return data that is not durable yet: call Settled before showing it.
	Session(ctx context.Context, id string) (agent.Session, error)
	DeleteSession(ctx context.Context, id, actor string) error
	// ListSessions returns a page, and the cursor of the next page or "".
	ListSessions(ctx context.Context, q sessions.Query) (page []agent.Session, next string, err error)
	Context(ctx context.Context, id string) (map[string]json.RawMessage, error)
	PatchContext(ctx context.Context, id string, patch json.RawMessage, actor string) (map[string]json.RawMessage,
		error)
	History(ctx context.Context, id string, q store.HistoryQuery) (store.HistoryPage, error)
	Responds(ctx context.Context, sessionID, method string) (runtime.Introspection, error)
	// Here claims the session for this replica, before a call runs in it. The error names another owner.
	Here(ctx context.Context, id string) error
}

func (s *server) createSession(w *reply, r *http.Request) error {
	q := sessions.Request{Owner: w.owner}
	named := false
	err := s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "role":
			named = !isNull(v)
			f.name("/role", "role", v, &q.Role)
		case "model":
			f.short("/model", v, &q.Model, 200)
		case "contract":
			q.Contract = f.contract("/contract", v)
		case "context":
			f.object("/context", v, &q.Context)
		case "debug":
			f.boolean("/debug", v, &q.Debug)
		case "metadata":
			q.Metadata = f.stringMap("/metadata", v, 64)
		default:
			f.unknown("", name, "role, model, contract, context, debug, metadata")
		}
	})
	if err != nil {
		return err
	}
	if !named {
		return required("role", `say who is asked, such as {"role": "calculator"}`)
	}
	session, err := w.run.CreateSession(r.Context(), q)
	if err != nil {
		return err
	}
	w.Header().Set("Location", s.location("/v1/sessions/"+session.ID))
	return s.send(w, http.StatusCreated, session)
}

// required returns the problem that a member of the body is missing.
func required(name, hint string) error {
	return fault(codeInvalid, name+" is required", hint).in("/"+name, "is required")
}

func (s *server) listSessions(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after := q.limit(), q.cursor("sess_")
	if err := q.err(); err != nil {
		return err
	}
	found, next, err := w.run.ListSessions(r.Context(), sessions.Query{Owner: w.only(), After: after,
		Limit: limit + 1})
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, page(found, limit, func(x agent.Session) string { return x.ID }).goesOn(next))
}

// sessionID returns the id from the path, or the problem that there is no such session.
func sessionID(r *http.Request) (string, error) {
	id, ok := idParam(r, "id")
	if !ok {
		return "", missing(store.ErrNotFound, "session of that id")
	}
	return id, nil
}

func noSession(err error, id string) error { return missing(err, "session "+id) }

func (s *server) getSession(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	session, err := w.run.Session(r.Context(), id)
	if err != nil {
		return noSession(err, id)
	}
	return s.send(w, http.StatusOK, session)
}

func (s *server) deleteSession(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	if err := w.run.DeleteSession(r.Context(), id, w.owner); err != nil {
		return noSession(err, id)
	}
	return s.noContent(w)
}

func (s *server) getContext(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	c, err := w.run.Context(r.Context(), id)
	if err != nil {
		return noSession(err, id)
	}
	return s.sendContext(w, c)
}

// sendContext sends a context. An empty one is {}, not null.
func (s *server) sendContext(w *reply, c map[string]json.RawMessage) error {
	if c == nil {
		c = map[string]json.RawMessage{}
	}
	return s.send(w, http.StatusOK, c)
}

// patchContext applies a merge patch (RFC 7396) to the context of a session.
func (s *server) patchContext(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	patch, err := s.readObject(w, r)
	if err != nil {
		return err
	}
	c, err := w.run.PatchContext(r.Context(), id, patch, w.owner)
	if err != nil {
		return noSession(err, id)
	}
	return s.sendContext(w, c)
}

// historyList is a list with the total number of records.
type historyList struct {
	list[json.RawMessage]
	Size int `json:"size"`
}

// maxScanned bounds the records that one page of a filtered list reads, so its cost does not grow with the list.
const maxScanned = 20_000

// maxPage bounds the bytes of the records on a page, since the limit alone allows a thousand large ones.
const maxPage = 8 << 20

// getHistory returns a page of a session's records, or all of them as JSON Lines if the Accept header asks for it.
func (s *server) getHistory(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	q := readQuery(r)
	h := store.HistoryQuery{
		Limit: q.limit(), Scan: maxScanned, Bytes: maxPage, After: q.integer("after", 0, 0, 1<<53),
		Desc:   q.oneOf("order", "asc", "desc") == "desc",
		Method: q.name("method"), Status: q.oneOf("status", "ok", "error"), Role: q.name("role"),
		Since: q.time("since"), Until: q.time("until"),
	}
	previews := q.flag("previews")
	if err := q.err(); err != nil {
		return err
	}
	if wantsLines(r) {
		return s.exportHistory(w, r, id, h)
	}
	p, err := w.run.History(r.Context(), id, h)
	if err != nil {
		return noSession(err, id)
	}
	if previews {
		if p.Records, err = withPreviews(r.Context(), w, p.Records); err != nil {
			return err
		}
	}
	l := historyList{list[json.RawMessage]{Data: p.Records}, p.Size}
	if l.Data == nil {
		l.Data = []json.RawMessage{}
	}
	if p.Next > 0 {
		next := strconv.Itoa(p.Next)
		l.NextCursor = &next
	}
	return s.send(w, http.StatusOK, l)
}

// withPreviews adds the beginning of each value to the records of a history, if the value is stored.
func withPreviews(ctx context.Context, w *reply, records []json.RawMessage) ([]json.RawMessage, error) {
	entries, out := make([]agent.LogEntry, len(records)), slices.Clone(records)
	for i, raw := range records {
		var record struct {
			CallID  string `json:"call_id"`
			Outcome struct {
				Status string `json:"status"`
			} `json:"outcome_summary"`
		}
		if err := json.Unmarshal(raw, &record); err != nil {
			return nil, err
		}
		entries[i].CallID, entries[i].OutcomeStatus = record.CallID, record.Outcome.Status
	}
	if err := w.run.Preview(ctx, entries); err != nil {
		return nil, err
	}
	for i := range out {
		if open, whole := bytes.CutSuffix(bytes.TrimSpace(out[i]),
			[]byte("}")); whole && entries[i].ValuePreview != "" {
			out[i] = fmt.Appendf(nil, `%s,"value_preview":%s}`, open, agent.Encoded(entries[i].ValuePreview))
		}
	}
	return out, nil
}

// getResponds reports whether the session's role can answer the method without a model.
func (s *server) getResponds(w *reply, r *http.Request) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	method, err := nameParam(r, "method")
	if err != nil {
		return err
	}
	i, err := w.run.Responds(r.Context(), id, method)
	if err != nil {
		return noSession(err, id)
	}
	return s.send(w, http.StatusOK, i)
}

// mediaLines is the media type of JSON Lines.
const mediaLines = "application/jsonl"

// wantsLines reports whether the Accept header lists JSON Lines.
func wantsLines(r *http.Request) bool {
	for _, v := range r.Header["Accept"] {
		for part := range strings.SplitSeq(v, ",") {
			media, _, _ := strings.Cut(part, ";")
			if strings.TrimSpace(media) == mediaLines {
				return true
			}
		}
	}
	return false
}

// maxLines bounds the bytes of records that an export holds in memory.
const maxLines = 1 << 20

// exportHistory writes all records that the query selects after q.After, as JSON lines; it ignores limit. It reads page
// by page, so memory does not depend on the length of the history. If a later page fails, it breaks the connection, so
// that the client notices the missing rest.
func (s *server) exportHistory(w *reply, r *http.Request, id string, q store.HistoryQuery) error {
	q.Limit, q.Bytes = maxLimit, maxLines
	p, err := w.run.History(r.Context(), id, q)
	if err != nil {
		return noSession(err, id)
	}
	for {
		if err = s.writeLines(w, p.Records); err != nil || p.Next == 0 || r.Method == http.MethodHead {
			break
		}
		q.After = p.Next
		if p, err = w.run.History(r.Context(), id, q); err != nil {
			s.log.Error().Err(err).Str("request_id", w.requestID).Msg("an export of a history broke off")
			break
		}
	}
	if err != nil && w.status != 0 {
		panic(http.ErrAbortHandler) // the only way of net/http to break the connection
	}
	return err
}

// writeLines writes records as lines. It waits until they are durable, and until the large replies leave room.
func (s *server) writeLines(w *reply, records []json.RawMessage) error {
	if err := w.run.Settled(); err != nil {
		return err
	}
	size := 0
	for _, record := range records {
		size += len(record) + len("\n")
	}
	done, err := s.enterReplies(w, int64(size))
	if err != nil {
		return err
	}
	defer done()
	if w.status == 0 {
		w.Header().Set("Content-Type", mediaLines)
		w.WriteHeader(http.StatusOK)
	}
	for _, record := range records {
		// the limited capacity makes append copy the record, whose memory is shared
		if _, err := w.Write(append(record[:len(record):len(record)], '\n')); err != nil {
			return err
		}
	}
	return nil
}

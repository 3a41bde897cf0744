package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store"
)

const mediaLines = "application/jsonl"

// wantsLines reports whether the client asked for JSON lines.
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

// maxLines bounds the bytes of records that an export holds at a time.
const maxLines = 1 << 20

// exportHistory writes all the records that the query selects, one a line, from its after on. It reads page by page, so
// that a long history costs no more memory than a short one; limit counts for nothing. A client sees that an export was
// cut short by a connection that breaks.
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
		panic(http.ErrAbortHandler) // net/http's way to break the connection
	}
	return err
}

// writeLines writes records, one a line, when there is room for them among the large replies.
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
		if _, err := w.Write(append(record[:len(record):len(record)], '\n')); err != nil {
			return err
		}
	}
	return nil
}

package api

import (
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

// exportHistory writes all the records that the query selects, one a line, from its after on. It reads page by page, so
// that a long history costs no more memory than a short one; limit counts for nothing. A client sees that an export was
// cut short by a connection that breaks.
func (s *server) exportHistory(w *reply, r *http.Request, id string, q store.HistoryQuery) error {
	q.Limit = maxLimit
	p, err := s.run.History(r.Context(), id, q)
	if err != nil {
		return noSession(err, id)
	}
	w.Header().Set("Content-Type", mediaLines)
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	for {
		for _, record := range p.Records {
			if _, err := w.Write(append(record[:len(record):len(record)], '\n')); err != nil {
				return nil // the client is gone
			}
		}
		if p.Next == 0 {
			return nil
		}
		q.After = p.Next
		if p, err = s.run.History(r.Context(), id, q); err != nil {
			s.log.Error().Err(err).Str("request_id", w.requestID).Msg("an export of a history broke off")
			panic(http.ErrAbortHandler) // net/http's way to break the connection
		}
	}
}

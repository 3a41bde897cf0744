package api

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/recurgentd/recurgentd/internal/store"
)

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

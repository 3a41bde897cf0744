package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// list is the JSON shape of all lists.
type list[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// page cuts entries down to limit. The caller has fetched limit+1 entries, so an extra one means that there is a next
// page.
func page[T any](entries []T, limit int, cursor func(T) string) list[T] {
	l := list[T]{Data: entries}
	if len(entries) > limit {
		l.Data = entries[:limit]
		next := cursor(l.Data[limit-1])
		l.NextCursor = &next
	}
	if l.Data == nil {
		l.Data = []T{}
	}
	return l
}

// goesOn sets the next cursor, for a page that ended before it was full. "" changes nothing.
func (l list[T]) goesOn(next string) list[T] {
	if next != "" && l.NextCursor == nil {
		l.NextCursor = &next
	}
	return l
}

// send encodes v before it writes the status, so that an encoding error is still a 500. It waits until the state that v
// shows is durable. The reply to a call does not pass here: it has waited for its own commit.
func (s *server) send(w *reply, status int, v any) error {
	if err := w.run.Settled(); err != nil {
		return err
	}
	return s.sendNow(w, status, v)
}

// sendNow is send for values that do not come from the store.
func (s *server) sendNow(w *reply, status int, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// replies are JSON, never part of an HTML page
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode the reply: %w", err)
	}
	return s.sendBytes(w, status, b.Bytes())
}

// sendBytes writes the parts in order, once there is space for the reply. It returns an error only if there is none.
func (s *server) sendBytes(w *reply, status int, parts ...[]byte) error {
	size, held := 0, 0
	for _, p := range parts {
		size += len(p)
		// memory counts by capacity
		held += cap(p)
	}
	done, err := s.enterReplies(w, int64(held))
	if err != nil {
		return err
	}
	defer done()
	h := w.Header()
	h["Content-Type"] = s.fixed.json
	w.length[0] = strconv.Itoa(size)
	h["Content-Length"] = w.length[:]
	w.WriteHeader(status)
	for _, p := range parts {
		_, _ = w.Write(p) // a write fails only when the client has gone
	}
	return nil
}

func (s *server) noContent(w *reply) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

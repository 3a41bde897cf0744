package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// smallBody is what a request may bring without being counted, and the step in which larger bodies are.
const smallBody = 64 << 10

// A held is what one request holds of what the owners share. A call that outlives its request keeps it to its end.
type held struct {
	shares *shares
	owner  agent.Owner

	bytes  int64 // of the request's body
	call   bool  // counts as a call
	turn   bool  // is one of the calls at once that the principal may have
	stream bool  // counts as a stream
}

// release gives back what was taken. It may be called again.
func (h *held) release() {
	if h.bytes > 0 {
		h.shares.bodies.Leave(h.owner, h.bytes)
		h.bytes = 0
	}
	h.endCall()
	if h.stream {
		h.stream = false
		h.shares.streams.Leave(h.owner, 1)
	}
}

// endCall gives back what a call holds beside its body.
func (h *held) endCall() {
	if h.turn {
		h.turn = false
		h.shares.turns.Leave(h.owner)
	}
	if h.call {
		h.call = false
		h.shares.calls.Leave(h.owner, 1)
	}
}

// awaitTurn waits while the principal has as many calls at once as it may have.
func (h *held) awaitTurn(ctx context.Context, most int) error {
	if !h.call || h.turn || most <= 0 {
		return nil
	}
	h.shares.waiting[causeConcurrency].Inc()
	err := h.shares.turns.Enter(ctx, h.owner, most)
	h.shares.waiting[causeConcurrency].Dec()
	h.turn = err == nil
	return err
}

// counted reads a body and takes what came of the share, as it comes: what a client merely claims to send takes nothing.
type counted struct {
	body io.Reader
	held *held
	read int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.read += int64(n)
	for c.read > smallBody && c.held.bytes < c.read {
		if !c.held.shares.bodies.Try(c.held.owner, smallBody) {
			return 0, c.held.shares.full(reasonBodies)
		}
		c.held.bytes += smallBody
	}
	return n, err
}

func (s *server) tooLarge() error {
	return fault(codeBodyTooLarge, "the body has more than "+strconv.FormatInt(s.o.MaxBody, 10)+" bytes", "")
}

// readBody returns the whole body, when it is the request's turn. What it returns is the caller's own.
func (s *server) readBody(w *reply, r *http.Request) ([]byte, error) {
	data, err := s.keptBody(w, r)
	if err != nil {
		return nil, err
	}
	// only now: the server notices a client that goes when its body is read
	return data, w.held.awaitTurn(r.Context(), w.who.Concurrency)
}

// keptBody returns the whole body at once, and keeps it where the request may have to be forwarded.
func (s *server) keptBody(w *reply, r *http.Request) ([]byte, error) {
	data, err := s.wholeBody(w, r)
	if err != nil {
		return nil, err
	}
	if s.o.Cluster != nil {
		w.body = data
		if bytes.Contains(data, []byte(`\u`)) { // decoding may repair surrogates in place
			w.body = bytes.Clone(data)
		}
	}
	return data, nil
}

func (s *server) wholeBody(w *reply, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n >= 0 && n <= min(smallBody, s.o.MaxBody) {
		data := make([]byte, n)
		_, err := io.ReadFull(r.Body, data)
		if err == nil && r.ProtoMajor == 1 {
			_ = r.Body.Close() // so that net/http does not look whether there is more
		}
		return data, s.unread(err)
	}
	// Without w, which would have the connection closed: fail reads on.
	limited := http.MaxBytesReader(nil, r.Body, s.o.MaxBody)
	var b bytes.Buffer
	_, err := b.ReadFrom(&counted{body: limited, held: &w.held})
	return b.Bytes(), s.unread(err)
}

// unread returns the problem of a body that cannot be read, nil for nil.
func (s *server) unread(err error) error {
	if err == nil {
		return nil
	}
	var large *http.MaxBytesError
	var full *Problem
	switch {
	case errors.As(err, &full):
		return full
	case errors.As(err, &large):
		return s.tooLarge()
	}
	return fault(codeMalformed, "the body ended before it was complete", "")
}

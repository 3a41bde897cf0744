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

// smallBody is how many bytes of a body are not counted against the owner's share, and the unit by which larger
// bodies are counted.
const smallBody = 64 << 10

// A held is a request's holdings of the shared resources. If a call outlives its request, it takes the holdings over
// and releases them at its end.
type held struct {
	shares *shares
	owner  agent.Owner

	bytes  int64 // taken from shares.bodies for the request's body
	call   bool  // counts in shares.calls
	turn   bool  // has one of the principal's concurrent turns
	stream bool  // counts in shares.streams
}

// release returns everything that is held. Further calls do nothing.
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

// endCall returns what is held for a call; what is held for the body stays.
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

// awaitTurn waits while the principal has most calls in flight. It does nothing for requests that are not calls, or
// if most is 0.
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

// counted reads a body and takes the bytes that arrived from the owner's share. A mere Content-Length takes nothing.
type counted struct {
	body io.Reader
	held *held
	read int64
}

// Read returns the problem of a full share as an error when the owner may take no more.
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

// readBody returns the whole body, once it is the request's turn. The caller owns the result.
func (s *server) readBody(w *reply, r *http.Request) ([]byte, error) {
	data, err := s.keptBody(w, r)
	if err != nil {
		return nil, err
	}
	// wait only now: net/http notices that a client has left only after its body was read
	return data, w.held.awaitTurn(r.Context(), w.who.Concurrency)
}

// keptBody returns the whole body without waiting for a turn. In a cluster it also keeps it in w.body, for
// forwarding.
func (s *server) keptBody(w *reply, r *http.Request) ([]byte, error) {
	data, err := s.wholeBody(w, r)
	if err != nil {
		return nil, err
	}
	if s.o.Cluster != nil {
		w.body = data
		if bytes.Contains(data, []byte(`\u`)) { // decoding may replace surrogates in place
			w.body = bytes.Clone(data)
		}
	}
	return data, nil
}

// wholeBody reads the body, at most MaxBody bytes.
func (s *server) wholeBody(w *reply, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n >= 0 && n <= min(smallBody, s.o.MaxBody) {
		data := make([]byte, n)
		_, err := io.ReadFull(r.Body, data)
		if err == nil && r.ProtoMajor == 1 {
			_ = r.Body.Close() // otherwise net/http would look for more
		}
		return data, s.unread(err)
	}
	// No writer is passed: with one, MaxBytesReader closes the connection, but fail reads the rest (drain).
	limited := http.MaxBytesReader(nil, r.Body, s.o.MaxBody)
	var b bytes.Buffer
	_, err := b.ReadFrom(&counted{body: limited, held: &w.held})
	return b.Bytes(), s.unread(err)
}

// unread returns the problem of a body that could not be read, or nil if err is nil.
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

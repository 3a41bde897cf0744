package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of a batch. A message costs more than its bytes, which the body's size bounds.
const (
	maxBatch    = 1000 // messages
	batchAtOnce = 8    // messages that are answered at the same time
)

// batch answers each message of a batch as it would be answered alone. The answers are events of one stream, or a list
// if no message needs a stream. A batch without requests has no answers.
func (s *Server) batch(library http.Handler, w http.ResponseWriter, r *http.Request, data []byte) {
	messages := elements(data)
	out := &batchReply{w: w}
	parts := make([]*batchPart, len(messages))
	turns := make(chan struct{}, batchAtOnce)
	var answering sync.WaitGroup
	for i, one := range messages {
		parts[i] = &batchPart{of: out, header: http.Header{}}
		turns <- struct{}{}
		answering.Go(func() {
			defer func() { <-turns }()
			m, fault := readMessage(one)
			if m.batch {
				fault = notAnObject()
			}
			if fault != nil && m.id == nil {
				fault.Message = "message " + strconv.Itoa(i+1) + " of the batch: " + fault.Message
			}
			s.one(library, parts[i], r, m, fault)
		})
	}
	answering.Wait()
	out.end(parts)
}

// elements returns the elements of a JSON array, or nil.
func elements(list []byte) (all []json.RawMessage) {
	if json.Unmarshal(list, &all) != nil {
		return nil
	}
	return all
}

// A batchReply is the reply to a batch.
type batchReply struct {
	w http.ResponseWriter

	mu    sync.Mutex // held while an event is written
	begun bool       // an event was written; guarded by mu
}

// write writes a whole event.
func (b *batchReply) write(header http.Header, event []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		b.begun = true
		maps.Copy(b.w.Header(), header)
	}
	return b.w.Write(event)
}

// flush flushes the events. Before the first one there is nothing to flush.
func (b *batchReply) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		return nil
	}
	return http.NewResponseController(b.w).Flush()
}

// end writes the answers that are not events.
func (b *batchReply) end(parts []*batchPart) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var answers [][]byte
	status := 0
	for _, p := range parts {
		if text := bytes.TrimSpace(p.text.Bytes()); len(text) > 0 {
			answers, status = append(answers, text), max(status, p.status)
		}
	}
	switch {
	case b.begun:
		for _, one := range answers {
			_, _ = fmt.Fprintf(b.w, "event: message\ndata: %s\n\n", one) // fails only when the client has gone
		}
	case len(answers) == 0:
		b.w.WriteHeader(http.StatusAccepted)
	default:
		b.w.Header().Set("Content-Type", "application/json")
		b.w.WriteHeader(status)
		_, _ = fmt.Fprintf(b.w, "[%s]\n", bytes.Join(answers, []byte(","))) // fails only when the client has gone
	}
}

// A batchPart takes the answer to one message of a batch.
type batchPart struct {
	of     *batchReply
	header http.Header
	status int
	text   bytes.Buffer // an answer that is not a stream
}

// Header returns the header of this answer alone.
func (p *batchPart) Header() http.Header { return p.header }

// WriteHeader keeps the status of this answer.
func (p *batchPart) WriteHeader(status int) { p.status = status }

// Write writes an event, or keeps the text of another answer.
func (p *batchPart) Write(b []byte) (int, error) {
	if kind, _, _ := mime.ParseMediaType(p.header.Get("Content-Type")); kind != "text/event-stream" {
		return p.text.Write(b)
	}
	return p.of.write(p.header, b)
}

// FlushError is the method that http.ResponseController calls to flush.
func (p *batchPart) FlushError() error { return p.of.flush() }

// notAnObject is the error for a message that is not an object.
func notAnObject() *jsonrpc.Error { return invalidMessage("it must be an object") }

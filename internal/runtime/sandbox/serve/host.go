package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A host implements recurgent.Host for one run: it sends the program's questions over the pipe.
type host struct {
	server *server
	nonce  uint64
	asked  uint64
	kept   keptAnswers
	sleepy time.Duration // slept by the program, but not yet asked of the daemon
	broken error         // error of the pipe: the daemon is gone
}

// Ask implements recurgent.Host. It decodes an answer anew each time, because the program may modify the result.
func (h *host) Ask(op string, params, result any) error {
	raw, err := h.encode(op, params)
	if err != nil {
		return err
	}
	key := (&wire.Question{Op: op, Params: raw}).Key()
	have := h.kept.find(key)
	reply := h.send(wire.Question{Op: op, Params: raw, Have: have.id})
	body := reply.Body
	switch {
	case reply.Holds == wire.ReplyRefused:
		return &recurgent.Failure{Type: reply.Type, Message: reply.Message}
	case reply.Holds == wire.ReplySame:
		body = have.body
	case wire.Repeatable(op):
		h.kept.put(keptAnswer{key, h.asked, body}, int(h.server.cfg.Memory/keptShare))
	}
	if result == nil {
		return nil
	}
	return recurgent.Unmarshal(body, result)
}

// leastSleep is the sleep that is collected before the daemon is asked to wait, because each question has a cost and
// counts.
const leastSleep = 50 * time.Millisecond

// sleep asks the daemon to wait. In a run without real sleeps the daemon replies at once.
func (h *host) sleep(d time.Duration) {
	if h.sleepy += d; h.sleepy < leastSleep {
		return
	}
	d, h.sleepy = h.sleepy, 0
	_ = h.Ask(wire.OpSleep, struct {
		Nanoseconds int64 `json:"nanoseconds"`
	}{int64(d)}, nil) // an impossible sleep ends the run
}

// encode encodes the parameters of a question and checks them. A nested call whose arguments cannot be encoded becomes
// a refusedCall, which the daemon records.
func (h *host) encode(op string, params any) (json.RawMessage, error) {
	raw, err := h.server.encode(params)
	if fault, ok := errors.AsType[*rt.Failure](err); ok {
		panic(fault) // the engine ends the run
	}
	if call, nested := params.(callParams); nested && (err != nil ||
		wire.CheckValue(raw, h.server.cfg.MaxDepth) != nil) {
		within := func(raw json.RawMessage) error { return wire.CheckValue(raw, h.server.cfg.MaxDepth-2) }
		raw, err = h.server.encode(refuse(call, h.server.encode, within))
	}
	if err != nil {
		return nil, &recurgent.Failure{Type: wire.ErrNonSerializable,
			Message: op + ": the arguments have no JSON form: " + err.Error()}
	}
	if len(raw) > wire.MaxAskParam {
		return nil, &recurgent.Failure{Type: wire.ErrDenied,
			Message: fmt.Sprintf("%s: the arguments take %d bytes, at most %d are allowed", op, len(raw),
				wire.MaxAskParam)}
	}
	if err := wire.CheckValue(raw, h.server.cfg.MaxDepth); err != nil {
		return nil, &recurgent.Failure{Type: wire.ErrNonSerializable,
			Message: op + ": the arguments have no JSON form: " + err.Error()}
	}
	return raw, nil
}

// send sends a question and returns the reply, which shares memory with the frame. If the pipe breaks, it sets h.broken
// and panics to end the run.
func (h *host) send(q wire.Question) wire.Reply {
	h.asked++
	q.Nonce, q.ID = h.nonce, h.asked
	q.Put(&h.server.wr)
	if h.broken = h.server.send(); h.broken != nil {
		panic(h.broken)
	}
	kind, payload, err := h.server.in.Next(maxFrame)
	if err != nil || kind != wire.KindReply {
		h.broken = errors.Join(wire.ErrFrame, err)
		panic(h.broken)
	}
	reply, err := wire.ParseReply(payload, h.nonce, h.asked)
	if err != nil {
		h.broken = err
		panic(h.broken)
	}
	return reply
}

// onStream asks the daemon for an operation on an open stream. The result shares memory with the frame.
func (h *host) onStream(op string, p wire.StreamParams, data []byte) ([]byte, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	reply := h.send(wire.Question{Op: op, Params: raw, Data: data})
	if reply.Holds == wire.ReplyRefused {
		return nil, &recurgent.Failure{Type: reply.Type, Message: reply.Message}
	}
	return reply.Body, nil
}

// ReadStream implements recurgent.Host.
func (h *host) ReadStream(stream int, p []byte) (int, error) {
	body, err := h.onStream(wire.OpRead, wire.StreamParams{Stream: stream, Bytes: min(len(p), wire.MaxPiece)}, nil)
	if err == nil && len(body) == 0 {
		err = io.EOF
	}
	return copy(p, body), err
}

// WriteStream implements recurgent.Host.
func (h *host) WriteStream(stream int, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), wire.MaxPiece)
		if _, err := h.onStream(wire.OpWrite, wire.StreamParams{Stream: stream}, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// CloseStream implements recurgent.Host.
func (h *host) CloseStream(stream int) {
	// Closing a closed stream has no effect.
	_, _ = h.onStream(wire.OpClose, wire.StreamParams{Stream: stream}, nil)
}

// keptShare is the divisor that gives keptAnswers its share of a runner's memory.
const keptShare = 16

// keptAnswers caches answers of this run, which the daemon need not send again while nothing has changed.
type keptAnswers struct {
	list []keptAnswer // oldest first
	size int          // bytes of all keys and bodies
}

type keptAnswer struct {
	key  string // op and parameters
	id   uint64 // id of the question
	body []byte
}

// find returns the answer of that key, or the zero value, whose id is 0, if there is none.
func (k *keptAnswers) find(key string) keptAnswer {
	for _, a := range k.list {
		if a.key == key {
			return a
		}
	}
	return keptAnswer{}
}

// put stores a copy of the answer, replaces an older one with the same key, and drops the oldest while all exceed limit
// bytes. An answer larger than limit is not stored.
func (k *keptAnswers) put(a keptAnswer, limit int) {
	drop := func(i int) {
		k.size -= len(k.list[i].key) + len(k.list[i].body)
		k.list = slices.Delete(k.list, i, i+1)
	}
	if i := slices.IndexFunc(k.list, func(old keptAnswer) bool { return old.key == a.key }); i >= 0 {
		drop(i)
	}
	size := len(a.key) + len(a.body)
	if size > limit {
		return
	}
	for k.size+size > limit {
		drop(0)
	}
	a.body = slices.Clone(a.body)
	k.list = append(k.list, a)
	k.size += size
}

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// childHost carries the program's questions over the pipe.
type childHost struct {
	loop   *childLoop
	nonce  uint64
	asked  uint64
	kept   keptAnswers
	broken error // of the pipe: the daemon is gone
}

// Ask implements recurgent.Host. An answer is decoded anew each time: what the program does to it is the program's own.
func (h *childHost) Ask(op string, params, result any) error {
	raw, err := h.encode(op, params)
	if err != nil {
		return err
	}
	key := op + "\x00" + string(raw)
	have := h.kept.find(key)
	p := h.send(op, raw, have.id)
	var body []byte
	switch p.byte() {
	case replyRefused:
		return &recurgent.Failure{Type: p.string(), Message: p.string()}
	case replySame:
		body = have.body
	default:
		body = p.bytes()
		if repeatable(op) {
			h.kept.put(keptAnswer{key, h.asked, body}, int(h.loop.cfg.Memory/keptShare))
		}
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(body, result)
}

// encode encodes a question's parameters and checks them.
func (h *childHost) encode(op string, params any) (json.RawMessage, error) {
	raw, err := h.loop.engine.Encode(params)
	if fault, ok := errors.AsType[*interp.Failure](err); ok {
		panic(fault) // the engine ends the run
	}
	if call, nested := params.(callParams); nested && (err != nil || checkValue(raw, h.loop.cfg.MaxDepth) != nil) {
		within := func(raw json.RawMessage) error { return checkValue(raw, h.loop.cfg.MaxDepth-2) }
		raw, err = h.loop.engine.Encode(refuse(call, h.loop.engine.Encode, within))
	}
	if err != nil {
		return nil, &recurgent.Failure{Type: agent.ErrNonSerializable, Message: op + ": the arguments have no JSON form: " + err.Error()}
	}
	if len(raw) > maxAskParam {
		return nil, &recurgent.Failure{Type: agent.ErrDenied, Message: fmt.Sprintf("%s: the arguments take %d bytes, at most %d are allowed", op, len(raw), maxAskParam)}
	}
	if err := checkValue(raw, h.loop.cfg.MaxDepth); err != nil {
		return nil, &recurgent.Failure{Type: agent.ErrNonSerializable, Message: op + ": the arguments have no JSON form: " + err.Error()}
	}
	return raw, nil
}

// send asks the daemon and returns what it replied, which shares memory with the frame. When the pipe breaks the call is
// over, and it panics.
func (h *childHost) send(op string, params json.RawMessage, have uint64) frameParser {
	h.asked++
	f := &h.loop.wr
	f.begin(kindAsk)
	f.fixed(h.nonce)
	f.uint(h.asked)
	f.string(op)
	f.bytes(params)
	f.uint(have)
	if h.broken = h.loop.send(); h.broken != nil {
		panic(h.broken)
	}
	kind, payload, err := h.loop.in.next(1 << 30)
	if err != nil || kind != kindReply {
		h.broken = errors.Join(errFrame, err)
		panic(h.broken)
	}
	p := frameParser{b: payload}
	if nonce, id := p.fixed(), p.uint(); nonce != h.nonce || id != h.asked {
		h.broken = errFrame
		panic(h.broken)
	}
	return p
}

// keptShare is the part of a runner's memory that keptAnswers may take, as a divisor.
const keptShare = 16

// keptAnswers are answers of this run that the daemon need not send again as long as nothing has changed.
type keptAnswers struct {
	list []keptAnswer // oldest first
	size int
}

type keptAnswer struct {
	key  string // op and parameters
	id   uint64 // of the question
	body []byte
}

// find returns the answer of that key, or the zero value, whose id says that there is none.
func (k *keptAnswers) find(key string) keptAnswer {
	for _, a := range k.list {
		if a.key == key {
			return a
		}
	}
	return keptAnswer{}
}

// put keeps a copy of the answer in the place of the older one, and lets the oldest go while they take more than limit.
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

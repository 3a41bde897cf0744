package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// Bounds of what a runner may say, beside Options.
const (
	maxMessage  = 4 << 10   // of an error's text
	maxFacts    = 256 << 10 // of the gate's facts or refusal
	maxKey      = 1 << 10   // of a context key
	maxReady    = 64 << 10
	maxSource   = 1 << 20 // the gate has its own, lower bound
	maxAskParam = 2 << 20 // of a question's parameters: room for a fetch's body
)

// appendRun encodes a call. Raw JSON is copied as it is.
func appendRun(f *frameBuilder, nonce uint64, r *Request, now time.Time, seed uint64) {
	f.begin(kindRun)
	f.fixed(nonce)
	f.fixed(uint64(now.UnixNano()))
	f.fixed(seed)
	f.uint(uint64(max(r.Depth, 0)))
	f.string(r.Role)
	f.string(r.Method)
	f.string(r.CallID)
	f.string(r.TraceID)
	f.uint(uint64(len(r.Args)))
	for _, a := range r.Args {
		f.bytes(a)
	}
	f.bytes(r.Kwargs)
	f.uint(uint64(len(r.Context)))
	for k, v := range r.Context {
		f.string(k)
		f.bytes(v)
	}
	f.bytes(r.InputHistory)
}

// A runOrder is a call as the runner reads it. It shares memory with the frame.
type runOrder struct {
	nonce   uint64
	now     time.Time
	seed    uint64
	in      recurgent.Input
	context map[string]json.RawMessage
}

func parseRun(payload []byte) (*runOrder, error) {
	p := frameParser{b: payload}
	o := &runOrder{nonce: p.fixed(), now: time.Unix(0, int64(p.fixed())).UTC(), seed: p.fixed()}
	o.in.Depth = int(p.uint())
	o.in.Role, o.in.Method, o.in.CallID, o.in.TraceID = p.string(), p.string(), p.string(), p.string()
	o.in.Args = make([]json.RawMessage, p.count())
	for i := range o.in.Args {
		o.in.Args[i] = p.copied() // Bind decodes them later, when the frame is gone
	}
	if kwargs := p.copied(); len(kwargs) > len("{}") {
		if err := json.Unmarshal(kwargs, &o.in.Kwargs); err != nil {
			return nil, fmt.Errorf("kwargs: %w", err)
		}
	}
	n := p.count()
	o.in.Context = make(map[string]any, n)
	if n > 0 {
		o.context = make(map[string]json.RawMessage, n)
	}
	for range n {
		k, raw := p.string(), p.copied()
		if p.bad {
			break
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, fmt.Errorf("context %q: %w", k, err)
		}
		o.context[k], o.in.Context[k] = raw, v
	}
	o.in.InputHistory = p.copied()
	if !p.end() {
		return nil, errFrame
	}
	return o, nil
}

// What a reply to a question holds.
const (
	replyBody byte = iota
	replyRefused
	replySame // nothing: the answer is the one that the runner said it has
)

// How a call ended, in an answer.
const (
	endValue byte = iota
	endAuthored
	endFailure
	endFault // of the engine
)

// An answer is how a call ended in the runner. Nothing of it is to be believed beyond what parseAnswer checks.
type answer struct {
	nonce   uint64
	end     byte
	discard bool // the runner asks to be replaced: something was left over
	clock   uint64
	chance  uint64

	value            []byte
	errType, message string
	detail, hint     string
	change           *agent.ContextChange
}

func appendAnswer(f *frameBuilder, a *answer) {
	f.begin(kindAnswer)
	f.fixed(a.nonce)
	f.byte(a.end)
	if a.discard {
		f.byte(1)
	} else {
		f.byte(0)
	}
	f.uint(a.clock)
	f.uint(a.chance)
	switch a.end {
	case endValue:
		f.bytes(a.value)
	case endAuthored:
		f.string(a.errType)
		f.string(a.message)
	case endFault:
		f.string(a.message)
	default:
		f.string(a.errType)
		f.string(a.message)
		f.string(a.detail)
		f.string(a.hint)
	}
	if a.change == nil {
		f.uint(0)
		f.uint(0)
		return
	}
	f.uint(uint64(len(a.change.Set)))
	for k, v := range a.change.Set {
		f.string(k)
		f.bytes(v)
	}
	f.uint(uint64(len(a.change.Delete)))
	for _, k := range a.change.Delete {
		f.string(k)
	}
}

// parseAnswer takes an answer apart and checks it: the nonce, the form of every value, the bounds.
func parseAnswer(payload []byte, nonce uint64, o *Options) (*answer, error) {
	p := frameParser{b: payload}
	a := &answer{nonce: p.fixed(), end: p.byte(), discard: p.byte() != 0, clock: p.uint(), chance: p.uint()}
	if p.bad {
		return nil, errFrame
	}
	if a.nonce != nonce {
		return nil, errors.New("an answer to another call")
	}
	switch a.end {
	case endValue:
		a.value = p.copied()
		if len(a.value) > o.MaxValue {
			return nil, fmt.Errorf("a value of %d bytes", len(a.value))
		}
		if err := checkValue(a.value, o.MaxDepth); err != nil && !p.bad {
			return nil, fmt.Errorf("a value with %w", err)
		}
	case endAuthored:
		a.errType, a.message = p.text(maxMessage), p.text(maxMessage)
	case endFailure:
		a.errType, a.message, a.detail, a.hint = p.text(64), p.text(maxMessage), p.text(64), p.text(maxMessage)
	case endFault:
		a.message = p.text(maxMessage)
	default:
		return nil, errFrame
	}
	if err := a.parseChange(&p, o); err != nil {
		return nil, err
	}
	if !p.end() {
		return nil, errFrame
	}
	return a, nil
}

func (a *answer) parseChange(p *frameParser, o *Options) error {
	total := 0
	if n := p.count(); n > 0 {
		a.change = &agent.ContextChange{Set: make(map[string]json.RawMessage, min(n, 1024))}
		for range n {
			k, v := p.bytes(), p.copied()
			if p.bad {
				return errFrame
			}
			total += len(k) + len(v)
			if err := checkContext(k, v, total, o); err != nil {
				return err
			}
			a.change.Set[string(k)] = v
		}
	}
	if n := p.count(); n > 0 {
		if a.change == nil {
			a.change = &agent.ContextChange{}
		}
		for range n {
			k := p.bytes()
			total += len(k)
			if p.bad {
				return errFrame
			}
			if err := checkContext(k, []byte("null"), total, o); err != nil {
				return err
			}
			a.change.Delete = append(a.change.Delete, string(k))
		}
	}
	return nil
}

func checkContext(k, v []byte, total int, o *Options) error {
	if total > o.MaxContext {
		return fmt.Errorf("context changes of more than %d bytes", o.MaxContext)
	}
	if len(k) > maxKey || toValid(k) != string(k) {
		return errors.New("a context key that is no short text")
	}
	if err := checkValue(v, o.MaxDepth); err != nil {
		return fmt.Errorf("a context value with %w", err)
	}
	return nil
}

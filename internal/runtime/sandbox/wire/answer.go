package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Values of Answer.End.
const (
	EndValue     byte = iota // a JSON value
	EndAuthored              // an error that the program returned
	EndFailure               // a failure that the program did not author
	EndFault                 // an internal fault of the engine
	EndRetriable             // as EndAuthored, for an error that the program marked as retriable
)

// Types of failures in answers, and of refusals that a runner makes itself. Package agent has all types; runners do not
// link it.
const (
	ErrExecution         = "execution"
	ErrNonSerializable   = "non_serializable_result"
	ErrResourceExhausted = "resource_exhausted"
	ErrDenied            = "denied"
	ErrInvalidInput      = "invalid_input"
)

// Limits bounds an answer.
type Limits struct {
	MaxValue   int // bytes of a result
	MaxContext int // bytes of a call's changes of its context
	MaxDepth   int // levels of arrays and objects
}

// An Answer reports how a call ended in the runner. Nothing in it may be trusted beyond what ParseAnswer checks.
type Answer struct {
	Nonce      uint64 // of the run
	End        byte   // EndValue, ...
	Discard    bool   // the runner asks to be replaced, because the call left something behind
	Clock      uint64 // readings of the clock
	Randomness uint64 // readings of randomness

	Value         []byte  // set for EndValue: compact JSON
	Type, Message string  // set for EndAuthored, EndRetriable and EndFailure; EndFault sets Message only
	Detail, Hint  string  // set for EndFailure
	Change        *Change // changes of the context; nil means none
}

// A Change lists a call's changes of the top-level keys of its session's context.
type Change struct {
	Set    map[string]json.RawMessage
	Delete []string
}

// Put builds the frame in f.
func (a *Answer) Put(f *Builder) {
	f.Begin(KindAnswer)
	f.PutFixed(a.Nonce)
	f.PutByte(a.End)
	if a.Discard {
		f.PutByte(1)
	} else {
		f.PutByte(0)
	}
	f.PutUint(a.Clock)
	f.PutUint(a.Randomness)
	switch a.End {
	case EndValue:
		f.PutBytes(a.Value)
	case EndAuthored, EndRetriable:
		f.PutString(a.Type)
		f.PutString(a.Message)
	case EndFault:
		f.PutString(a.Message)
	default:
		f.PutString(a.Type)
		f.PutString(a.Message)
		f.PutString(a.Detail)
		f.PutString(a.Hint)
	}
	if a.Change == nil {
		f.PutUint(0)
		f.PutUint(0)
		return
	}
	f.PutUint(uint64(len(a.Change.Set)))
	for k, v := range a.Change.Set {
		f.PutString(k)
		f.PutBytes(v)
	}
	f.PutUint(uint64(len(a.Change.Delete)))
	for _, k := range a.Change.Delete {
		f.PutString(k)
	}
}

// ParseAnswer parses an answer and checks the nonce, the syntax of every value, and all bounds.
func ParseAnswer(payload []byte, nonce uint64, l Limits) (Answer, error) {
	p := parse(payload)
	a := Answer{Nonce: p.TakeFixed(), End: p.TakeByte(), Discard: p.TakeByte() != 0, Clock: p.TakeUint(),
		Randomness: p.TakeUint()}
	if p.bad {
		return Answer{}, ErrFrame
	}
	if a.Nonce != nonce {
		return Answer{}, errors.New("an answer to another call")
	}
	switch a.End {
	case EndValue:
		a.Value = p.TakeCopy()
		if len(a.Value) > l.MaxValue {
			return Answer{}, fmt.Errorf("a value of %d bytes", len(a.Value))
		}
		if err := CheckValue(a.Value, l.MaxDepth); err != nil && !p.bad {
			return Answer{}, fmt.Errorf("a value with %w", err)
		}
	case EndAuthored, EndRetriable:
		a.Type, a.Message = p.TakeText(MaxMessage), p.TakeText(MaxMessage)
	case EndFailure:
		a.Type, a.Message, a.Detail, a.Hint = p.TakeText(64), p.TakeText(MaxMessage), p.TakeText(64),
			p.TakeText(MaxMessage)
	case EndFault:
		a.Message = p.TakeText(MaxMessage)
	default:
		return Answer{}, ErrFrame
	}
	if err := a.parseChange(&p, l); err != nil {
		return Answer{}, err
	}
	if !p.End() {
		return Answer{}, ErrFrame
	}
	return a, nil
}

// parseChange parses the changes of the context. A count alone allocates room for at most 1024 entries.
func (a *Answer) parseChange(p *Parser, l Limits) error {
	total := 0
	if n := p.TakeCount(); n > 0 {
		a.Change = &Change{Set: make(map[string]json.RawMessage, min(n, 1024))}
		for range n {
			k, v := p.TakeBytes(), p.TakeCopy()
			if p.bad {
				return ErrFrame
			}
			total += len(k) + len(v)
			if err := l.CheckContext(k, v, total); err != nil {
				return err
			}
			a.Change.Set[string(k)] = v
		}
	}
	if n := p.TakeCount(); n > 0 {
		if a.Change == nil {
			a.Change = &Change{}
		}
		for range n {
			k := p.TakeBytes()
			total += len(k)
			if p.bad {
				return ErrFrame
			}
			if err := l.CheckContext(k, []byte("null"), total); err != nil {
				return err
			}
			a.Change.Delete = append(a.Change.Delete, string(k))
		}
	}
	return nil
}

// CheckContext returns an error if a changed context key or its value is not allowed. total is the size of all changes
// so far, in bytes.
func (l Limits) CheckContext(k, v []byte, total int) error {
	if total > l.MaxContext {
		return fmt.Errorf("context changes of more than %d bytes", l.MaxContext)
	}
	if len(k) > maxKey || ValidText(k) != string(k) {
		return errors.New("a context key that is no short text")
	}
	if err := CheckValue(v, l.MaxDepth); err != nil {
		return fmt.Errorf("a context value with %w", err)
	}
	return nil
}

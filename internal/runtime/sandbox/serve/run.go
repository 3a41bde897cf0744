package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/plain"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// run serves one call. It encodes the value within the run, under the daemon's deadline, because encoding calls methods
// of the program.
func (s *server) run(payload []byte) error {
	frame, err := wire.ParseRun(payload)
	if err != nil || !s.loaded {
		return wire.ErrFrame
	}
	o, err := decode(frame)
	if err != nil {
		return wire.ErrFrame
	}
	host := &host{server: s, nonce: frame.Nonce}
	if sleeps, ok := s.engine.(interface{ OnSleep(func(time.Duration)) }); ok {
		sleeps.OnSleep(host.sleep)
	}
	a := s.evaluate(o, host)
	if host.broken != nil {
		return host.broken
	}
	a.Nonce = frame.Nonce
	clock, randomness := s.engine.Reads()
	a.Clock, a.Randomness = uint64(max(clock, 0)), uint64(max(randomness, 0))
	a.Discard = s.leftovers()
	a.Put(&s.wr)
	err = s.send()
	s.pace.Ran() // while the daemon reads the answer
	return err
}

// An input is the input of a run, as the program sees it.
type input struct {
	in      recurgent.Input
	context map[string]json.RawMessage // as received, to find changes
	now     time.Time
	seed    uint64
}

// decode converts a Run to the program's input. An error means that the daemon sent invalid JSON.
func decode(run *wire.Run) (*input, error) {
	o := &input{context: run.Context, now: run.Now, seed: run.Seed}
	o.in = recurgent.Input{Depth: run.Depth, Role: run.Role, Method: run.Method, CallID: run.CallID,
		TraceID: run.TraceID, Args: run.Args,
		Context: make(map[string]any, len(run.Context)), InputHistory: run.InputHistory,
		Decode: plain.Decode}
	if len(run.Kwargs) > len("{}") {
		if err := json.Unmarshal(run.Kwargs, &o.in.Kwargs); err != nil {
			return nil, fmt.Errorf("kwargs: %w", err)
		}
	}
	for k, raw := range run.Context {
		v, err := plain.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("context %q: %w", k, err)
		}
		o.in.Context[k] = v
	}
	return o, nil
}

// evaluate runs the program and encodes its result. Every panic ends in an answer.
func (s *server) evaluate(o *input, host *host) (a *wire.Answer) {
	defer func() {
		if v := recover(); v != nil { // a panic in a method of the error that the program returned
			a = panicked(rt.PanicOf(v))
		}
	}()
	call, err := recurgent.New(o.in, host)
	if err != nil {
		return failed(wire.ErrExecution, "input", "the arguments cannot be decoded: "+err.Error(), "")
	}
	value, err, p := s.engine.Run(call, o.now, o.seed)
	var raw json.RawMessage
	var formless error
	if p == nil && err == nil {
		raw, formless = s.encode(value) // before Finish, so that a file left open is noticed
	}
	if unwritten := recurgent.Finish(call); p == nil && err == nil {
		err = unwritten
	}
	switch {
	case p != nil:
		return panicked(p)
	case err != nil:
		f, end := recurgent.AsFailure(err), wire.EndAuthored
		if f.Retriable {
			end = wire.EndRetriable
		}
		return &wire.Answer{End: end, Type: wire.BoundText([]byte(f.Type), 64),
			Message: wire.BoundText([]byte(f.Message), wire.MaxMessage-8)}
	}
	if err = formless; err == nil {
		err = s.fits(raw)
	}
	if fault, ok := errors.AsType[*rt.Failure](err); ok {
		return faulty(fault.Why)
	}
	if err != nil {
		return failed(wire.ErrNonSerializable, "", "the result has no JSON form: "+err.Error(),
			"Return plain data: maps, slices, strings, numbers, booleans, nil.")
	}
	a = &wire.Answer{End: wire.EndValue, Value: raw}
	if f := s.diff(o, call.Context, a); f != nil {
		return f
	}
	return a
}

// panicked returns the answer of a run that ended in a panic.
func panicked(p *rt.Panic) *wire.Answer {
	if p.Class == rt.ClassFailure {
		return faulty(p.Message)
	}
	if p.Class == rt.ClassInput {
		return &wire.Answer{End: wire.EndAuthored, Type: wire.ErrInvalidInput,
			Message: wire.BoundText([]byte(p.Message), wire.MaxMessage-8)}
	}
	message := "panic: " + wire.BoundText([]byte(p.Message), wire.MaxMessage-64) // leaves room for the line
	if p.Line > 0 {
		message += fmt.Sprintf(" (program.go:%d)", p.Line)
	}
	hint := ""
	for part, h := range panicHints {
		if strings.Contains(message, part) {
			hint = h
		}
	}
	return failed(wire.ErrExecution, "panic", message, hint)
}

// panicHints maps a part of a panic's message to advice for the model.
var panicHints = map[string]string{
	"unsupported Perl syntax":      "Regular expressions have no (?=...), (?!...) and (?<=...) here: test each part by an expression or a loop of its own.",
	"invalid escape sequence: `\\": "Regular expressions have no \\1 here: compare the parts in the program.",
	"with length 0":                "The list is empty: make([]T, n) has n items; append adds one; look at len(list) before list[0].",
	"assignment to entry in nil":   "Make the map first: m := map[string]T{}.",
	"a float64 does not hold":      digitsHint,
	"is json.Number, not float64":  digitsHint,
	"interface {} is nil, not":     "The value is missing: v, ok := x.(T), and what to do if !ok.",
}

const digitsHint = "Take a json.Number too: n.Int64() or math/big keeps its digits. call.Bind fills an int64, a json.Number or a json.RawMessage."

// fits returns an error if the encoded value exceeds a limit.
func (s *server) fits(raw []byte) error {
	if len(raw) > s.cfg.MaxValue {
		return fmt.Errorf("it takes %d bytes, at most %d are allowed", len(raw), s.cfg.MaxValue)
	}
	return wire.CheckValue(raw, s.cfg.MaxDepth)
}

// faulty returns the answer for an internal fault of the engine. The daemon ends a runner that sends it.
func faulty(why string) *wire.Answer {
	return &wire.Answer{End: wire.EndFault, Message: wire.BoundText([]byte(why), wire.MaxMessage-8)}
}

func failed(errType, detail, message, hint string) *wire.Answer {
	return &wire.Answer{End: wire.EndFailure, Type: errType, Message: wire.BoundText([]byte(message),
		wire.MaxMessage-8), Detail: detail, Hint: hint}
}

// leftovers reports whether the run left anything behind: goroutines, much memory, or state that the program may have
// changed in packages.
func (s *server) leftovers() bool {
	if runtime.NumGoroutine() > s.base {
		return true
	}
	if e, ok := s.engine.(interface{ Residue() bool }); ok && e.Residue() {
		return true
	}
	metrics.Read(s.memory)
	return s.memory[0].Value.Uint64() > uint64(s.cfg.Memory/4)
}

// diff adds the changes of the context to a, comparing the encoded value of each top-level key with the received one.
// It returns another answer if a changed value is not allowed, otherwise nil.
func (s *server) diff(o *input, after map[string]any, a *wire.Answer) *wire.Answer {
	change := &wire.Change{}
	total := 0
	for k, v := range after {
		raw, err := s.encode(v)
		if fault, ok := errors.AsType[*rt.Failure](err); ok {
			return faulty(fault.Why)
		}
		if err != nil {
			return failed(wire.ErrNonSerializable, "context", fmt.Sprintf("context key %.100q has no JSON form: %v", k,
				err), "Keep only plain data in the context.")
		}
		before, had := o.context[k]
		if had && (string(before) == string(raw) || s.same(before, raw)) {
			continue
		}
		total += len(k) + len(raw)
		if err := s.cfg.Limits().CheckContext([]byte(k), raw, total); err != nil {
			return failed(wire.ErrNonSerializable, "context", fmt.Sprintf("context key %.100q: %v", k, err),
				"Keep little in the context.")
		}
		if change.Set == nil {
			change.Set = map[string]json.RawMessage{}
		}
		change.Set[k] = raw
	}
	for k := range o.context {
		if _, ok := after[k]; !ok {
			change.Delete = append(change.Delete, k)
		}
	}
	if len(change.Set)+len(change.Delete) > 0 {
		a.Change = change
	}
	return nil
}

// same reports whether the stored text decodes to the value that raw encodes, although the two are spelled differently.
// A number beyond float64's precision that the program has not touched must not be rewritten.
func (s *server) same(before, raw json.RawMessage) bool {
	v, err := plain.Decode(before)
	if err != nil {
		return false
	}
	again, err := s.engine.Encode(v)
	return err == nil && string(again) == string(raw)
}

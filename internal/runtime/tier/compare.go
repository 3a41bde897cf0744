package tier

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A Sample is a run on the engine that can be repeated.
type Sample struct {
	Origin  string          // "call call_…", "fixture call_…" or "example ex_…"
	Request sandbox.Request // as it was run
	Result  sandbox.Result  // of the engine
	Host    sandbox.Host    // answers what the journal holds as a digest only
}

// maxSample bounds the bytes of a sample that waits to be compared.
const maxSample = 256 << 10

// An offered sample waits for its comparison.
type offered struct {
	program *Program
	sample  Sample
}

// Offer hands over the sample of a run for which Ran returned true. Without room for it, or where it cannot be repeated, it is dropped.
func (p *Program) Offer(s Sample) {
	if !Repeatable(&s.Result) || len(p.tier.samples) == cap(p.tier.samples) || size(&s) > maxSample {
		return
	}
	// The call goes on and may use its buffers again.
	s.Request = copyRequest(s.Request)
	s.Result.Value = bytes.Clone(s.Result.Value)
	s.Result.Effects.Journal = bytes.Clone(s.Result.Effects.Journal)
	select {
	case p.tier.samples <- offered{p, s}:
	default:
	}
}

// Repeatable reports whether a run ended by itself, and in a way that depends on nothing but its input and its effects.
func Repeatable(res *sandbox.Result) bool {
	if res.Tier != sandbox.TierEngine || res.Effects.Truncated {
		return false
	}
	f := res.Failure
	return f == nil || !f.Ours && (f.Type == agent.ErrExecution && f.Detail != sandbox.DetailDiverged || f.Type == agent.ErrNonSerializable)
}

func size(s *Sample) int {
	n := len(s.Request.Kwargs) + len(s.Request.InputHistory) + len(s.Result.Value) + len(s.Result.Effects.Journal)
	for _, a := range s.Request.Args {
		n += len(a)
	}
	for k, v := range s.Request.Context {
		n += len(k) + len(v)
	}
	return n
}

func copyRequest(q sandbox.Request) sandbox.Request {
	args := make([]json.RawMessage, len(q.Args))
	for i, a := range q.Args {
		args[i] = bytes.Clone(a)
	}
	q.Args, q.Kwargs, q.InputHistory = args, bytes.Clone(q.Kwargs), bytes.Clone(q.InputHistory)
	q.Context = maps.Clone(q.Context)
	for k, v := range q.Context {
		q.Context[k] = bytes.Clone(v)
	}
	return q
}

// How a comparison ends.
type verdictOf int

const (
	equal verdictOf = iota
	unequal
	unclear // the engine itself ends otherwise when it runs the sample again
	failed  // the executable could not be run
)

// compare runs the sample on the executable. Where the engine ends otherwise, and ends so again, that is a difference: it is written out, and the program stays on
// the engine.
func (t *Tier) compare(p *Program, x *sandbox.Executable, s Sample) verdictOf {
	compiled := t.again(s, x)
	switch f := compiled.Native; {
	case t.life.Err() != nil:
		return failed
	case f != nil && f.Kind == sandbox.NativeBusy:
		return unclear
	case f != nil && f.Kind == sandbox.NativeMissing:
		_ = os.Remove(x.Path)                  // a damaged file would be found in the cache again
		p.phase.CompareAndSwap(checking, idle) // it will be built again
		p.phase.CompareAndSwap(building, idle)
		return failed
	case f != nil:
		t.o.Metrics.NativeFault(f.Kind)
		p.turnOff(broken, "its compiled program failed on "+s.Origin+": "+f.Message, 0)
		return failed
	case sameEnd(&compiled, &s.Result):
		return equal
	}
	engine := t.again(s, nil)
	switch {
	case t.life.Err() != nil:
		return failed
	case sameEnd(&compiled, &engine):
		return equal
	case !sameEnd(&engine, &s.Result):
		return unclear
	}
	t.differ(p, x, s, &compiled)
	return unequal
}

// again runs the sample once more on what it took from outside: on the executable, or without one on the engine.
func (t *Tier) again(s Sample, x *sandbox.Executable) sandbox.Result {
	q := s.Request
	q.Native, q.Sleep, q.End, q.NoFetch = x, 0, time.Time{}, true
	if q.Recorded == nil {
		q.Recorded = s.Result.Effects.Journal
	}
	if q.Recorded == nil {
		q.Recorded = sandbox.EmptyJournal()
	}
	return t.o.Box.Run(t.life, q, s.Host)
}

// sameEnd reports whether two runs ended in the same bytes, changed the context alike and asked the host for as much. Of a failure the type alone counts: its message
// may name an address.
func sameEnd(a, b *sandbox.Result) bool {
	if (a.Failure == nil) != (b.Failure == nil) || (a.Authored == nil) != (b.Authored == nil) {
		return false
	}
	switch {
	case a.Failure != nil:
		return a.Failure.Type == b.Failure.Type && a.Failure.Ours == b.Failure.Ours && (a.Failure.Detail == sandbox.DetailDiverged) == (b.Failure.Detail == sandbox.DetailDiverged)
	case a.Authored != nil:
		return *a.Authored == *b.Authored && sameEffects(a, b)
	}
	return bytes.Equal(a.Value, b.Value) && sameChange(a.Context, b.Context) && sameEffects(a, b)
}

func sameEffects(a, b *sandbox.Result) bool {
	return a.Effects.Nested == b.Effects.Nested && len(a.Effects.Fetches) == len(b.Effects.Fetches) && a.Effects.Asks == b.Effects.Asks
}

func sameChange(a, b *agent.ContextChange) bool {
	if a == nil {
		a = &agent.ContextChange{}
	}
	if b == nil {
		b = &agent.ContextChange{}
	}
	same := func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }
	return maps.EqualFunc(a.Set, b.Set, same) && slices.Equal(slices.Sorted(slices.Values(a.Delete)), slices.Sorted(slices.Values(b.Delete)))
}

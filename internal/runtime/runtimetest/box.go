package runtimetest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A Run is a scripted program: a Go function that stands in for it.
type Run func(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result

// Box is a sandbox without processes, for tests of what follows a run's result. A program is a Go function, and its
// source is the function's name. Set the exported fields before the first call.
type Box struct {
	Programs map[string]Run
	// by source; a missing entry means that the program uses its arguments and nothing else
	Facts   map[string]report.Facts
	Refused map[string]*sandbox.Failure // by source: programs that the gate refuses

	mu   sync.Mutex
	runs []sandbox.Request
}

// Load returns the program's facts, or the failure of a program that is refused or unknown.
func (b *Box) Load(_ context.Context, p sandbox.Program, _ agent.Owner) (*report.Facts, *sandbox.Failure) {
	if f := b.Refused[p.Source]; f != nil {
		return nil, f
	}
	if b.Programs[p.Source] == nil {
		return nil, &sandbox.Failure{Type: "invalid_code", Message: "scripted: no program " + p.Source}
	}
	f, known := b.Facts[p.Source]
	if !known {
		f.UsesArgs = true
	}
	return &f, nil
}

// Fix is Load, because there is nothing to fix in a function's name.
func (b *Box) Fix(ctx context.Context, source string, _ report.Terms,
	owner agent.Owner) (sandbox.Program, *report.Facts, sandbox.Timing, *sandbox.Failure) {
	p := sandbox.Program{Source: source, Checksum: agent.Checksum(source)}
	facts, failure := b.Load(ctx, p, owner)
	return p, facts, sandbox.Timing{}, failure
}

// Run runs the program.
func (b *Box) Run(ctx context.Context, q sandbox.Request, h sandbox.Host) sandbox.Result {
	b.mu.Lock()
	b.runs = append(b.runs, q)
	b.mu.Unlock()
	facts, refused := b.Load(ctx, q.Program, q.Owner)
	if refused != nil {
		return sandbox.Result{Failure: refused}
	}
	res := b.Programs[q.Program.Source](ctx, q, h)
	res.Facts = facts
	if res.Tier == "" {
		res.Tier = sandbox.TierEngine
	}
	return res
}

// Runs returns the requests to run the program so far, in order.
func (b *Box) Runs(source string) []sandbox.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.runs), func(q sandbox.Request) bool { return q.Program.Source != source })
}

// Status reports a sandbox at the level of processes.
func (b *Box) Status() sandbox.Status { return sandbox.Status{Level: sandbox.LevelProcess} }
func (b *Box) Stats() sandbox.Stats   { return sandbox.Stats{} }
func (b *Box) Close() error           { return nil }

// Returns is a program that returns the given JSON value.
func Returns(value string) Run {
	return func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result { return Value(value) }
}

// Raises is a program that returns an error that it authored.
func Raises(errorType, message string) Run {
	return func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
		return sandbox.Result{Authored: &sandbox.AuthoredError{Type: errorType, Message: message}}
	}
}

// Breaks is a program that ends in a failure.
func Breaks(errorType, message string) Run {
	return func(context.Context, sandbox.Request, sandbox.Host) sandbox.Result {
		return Failure(errorType, message)
	}
}

// Value is the result of a run that returned the JSON value.
func Value(value string) sandbox.Result { return sandbox.Result{Value: json.RawMessage(value)} }

// Failure is the result of a run that failed.
func Failure(errorType, message string) sandbox.Result {
	return sandbox.Result{Failure: &sandbox.Failure{Type: errorType, Message: message}}
}

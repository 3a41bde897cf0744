package proof

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/judge"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// A Dry describes a run of a program on given input that keeps and counts nothing: for proofs, examples and try.
type Dry struct {
	ID      string // attempt ID
	CallID  string // seeds the run's randomness
	Args    []json.RawMessage
	Kwargs  json.RawMessage
	Context json.RawMessage // an object, or empty
	// recorded effects to replay. If nil, the run is live: nested calls run the stored programs, and nothing is written
	effects json.RawMessage
	Denied  bool           // deny the fetches of a live run
	of      string         // owner of the input and the recorded effects; "" if they are the call's own
	guard   *attempt.Guard // limits the run beyond the manifest; nil means the manifest alone
	// the input is from an answered call, so it runs even if it does not fit what the program declares
	earlier bool
}

// DryRun runs the generation. The attempt of an interrupted run has agent.ClassNone. ok is false if the context is not
// an object.
func (c *Against) DryRun(ctx context.Context, g *agent.Generation, d Dry) (a *judge.Judged, ok bool) {
	q, h, ok := c.dryRequest(g, d)
	if !ok {
		return nil, false
	}
	a = &judge.Judged{Attempt: attempt.Attempt{ID: d.ID, Program: g, Takes: g.Interface,
		Fit: c.FitOf(g.Interface, d.Args, d.Kwargs)}, Stage: attempt.StageProof, Of: d.of}
	if a.Misfit = c.Binds(g.Interface) && !a.Fit.OK() && !d.earlier; a.Misfit {
		a.Outcome, a.Class, a.Guard = judge.Misfits(&a.Fit, g.Interface, c.Method), agent.ClassAuthored, h.Guard
		a.Explain()
		return a, true
	}
	a.Result = c.Env.Sandbox.Run(ctx, q, h)
	attempt.Discard(h.Drafts)
	a.Denied, a.Guard = h.Refused, h.Guard
	switch res := a.Result; {
	case ctx.Err() != nil && res.Value == nil:
		a.Outcome, a.Class = interrupt.Outcome(ctx)
	case res.Failure != nil:
		a.Outcome, a.Class = judge.Failed(res.Failure), agent.ClassIntrinsic
		if res.Failure.Ours {
			a.Class = agent.ClassNone
		}
	case res.Authored != nil:
		a.Outcome, a.Class = agent.Failed(res.Authored.Type, res.Authored.Message), agent.ClassAuthored
		a.Outcome.Retriable = res.Authored.Retriable
		a.Outcome.Authored = true
	default:
		a.Outcome, a.Class = agent.Outcome{Status: agent.StatusOK, Value: res.Value}, agent.ClassOK
	}
	if missing := a.Missing(); missing != nil && !a.Outcome.OK() && a.Class != agent.ClassNone {
		a.Unapproved(missing)
	}
	return a, true
}

// dryRequest returns the request to run the generation, always on the engine, and the host that answers its host calls.
func (c *Against) dryRequest(g *agent.Generation, d Dry) (q sandbox.Request, h *attempt.Host, ok bool) {
	var memory map[string]json.RawMessage
	if len(d.Context) > 0 && json.Unmarshal(d.Context, &memory) != nil {
		return q, nil, false
	}
	var given sandbox.Given
	if memory == nil {
		given = sandbox.Journalled(d.effects)
		memory = given.Context
	}
	args, kwargs := g.Arrange(d.Args, d.Kwargs)
	h = &attempt.Host{For: c.Call, Nester: c.Nester, Attempt: d.ID, Recorded: d.effects != nil, Dry: true,
		Denied: d.Denied,
		Guard:  d.guard}
	if h.Guard == nil {
		h.Guard = GuardFor(&c.Selection)
	}
	return sandbox.Request{Canonical: call.Canonical(c.Rules),
		Program: attempt.ProgramOf(g), Owner: c.RunsFor(d.of), Role: c.Role, Method: c.Method, CallID: d.CallID,
		TraceID: c.TraceID, Depth: c.Depth,
		Args: args, Kwargs: kwargs, Context: memory, Now: c.Env.Now(), Seed: attempt.Seed(d.CallID),
		Timeout:      c.Env.RunTimeout,
		InputHistory: given.InputHistory, Recorded: d.effects, NoFetch: d.Denied, Fetches: c.Policy.FetchesPerCall,
		Guard: h.Guard.OfFetch(),
	}, h, true
}

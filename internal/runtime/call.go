package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// Call runs a call and returns once its commit is durable. The session's next call starts earlier, as soon as this
// commit has its place in the order. The call is canceled when ctx ends. If its client just disconnects after a model
// was asked for a program, the call goes on to its own deadline instead, so that the program is kept. An error means
// that no call took place and nothing was recorded.
//
// The phases, each a function that takes the previous one's value:
//
//	open   → *opened    the checked request (open.go)
//	choose → selected   its contract, its context, and the program that is to answer (choose.go)
//	run    → Attempt    one run of one program (package attempt)
//	judge  → Judged     the outcome of that run (package judge); recover.go repairs or forges after a failure
//	commit → CallResult everything that is kept, in one commit (commit.go)
func (r *Runtime) Call(ctx context.Context, q CallRequest) (CallResult, error) {
	ctx, c, replay, err := r.open(ctx, q)
	if c == nil {
		return replay, err
	}
	return c.perform(ctx)
}

// Start runs a call asynchronously: the call outlives the request. done receives exactly one result and is then closed.
func (r *Runtime) Start(q CallRequest) (callID string, done <-chan CallResult, err error) {
	ctx, c, replay, err := r.open(r.life, q)
	if err != nil {
		return "", nil, err
	}
	result := make(chan CallResult, 1)
	if c == nil {
		result <- replay
		close(result)
		return replay.CallID, result, nil
	}
	c.unattended = true
	go func() {
		res, err := c.perform(ctx)
		if err != nil {
			r.env.Logger.Error().Err(err).Str("call_id", c.ID).Msg("an asynchronous call was not kept")
			res = CallResult{Err: err}
		}
		result <- res
		close(result)
	}()
	return c.ID, result, nil
}

// perform waits for the session's turn and takes an opened call through the remaining phases.
func (c *opened) perform(ctx context.Context) (CallResult, error) {
	defer c.close()
	if err := c.r.Sessions.Queue.Await(ctx, c.place); err != nil {
		return c.neverStarted(ctx).commit()
	}
	c.hasTurn = true
	defer c.leaveTurn()
	turn := c.Env.Now()
	c.Span.Stage("queue", c.Started, turn)
	done := c.answer(ctx)
	done.stages.Queue = turn.Sub(c.Started)
	return done.commit()
}

// leaveTurn passes the session's turn to the next call, once. The commit calls it as soon as the call has its place in
// the order, without waiting for the disk. The next call sees this call's changes, and is lost with them if they are
// lost.
func (c *opened) leaveTurn() {
	if c.hasTurn {
		c.hasTurn = false
		c.r.Sessions.Queue.Leave(c.Session.ID)
	}
}

// answer finds the call's answer: from a setter, or from a program that it selects, runs and judges.
func (c *opened) answer(ctx context.Context) *answered {
	if key := call.SetterKey(c.Method); key != "" {
		return c.set(key)
	}
	s, err := c.choose(ctx)
	if err != nil {
		return c.storeFailed(ctx, err)
	}
	// A warm call reports no progress, so it pays nothing for events.
	if s.Decision.Decision != agent.DecideRun {
		c.Progress.Add(progress.Selected, s.Decision.Logged())
	}
	return s.serve(ctx, c)
}

// set answers a method named "key=": it writes the context key and runs no program.
func (c *opened) set(key string) *answered {
	done := &answered{open: c, selected: selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call,
		Decision: selection.Decision{Decision: agent.DecideNone,
			Reason: selection.ReasonSetter}}, Nester: nester{c.r}}, r: c.r},
		outcome: agent.Outcome{Status: agent.StatusOK, Value: c.Args[0]}}
	if c.Depth == 0 {
		done.context = &agent.ContextChange{Set: map[string]json.RawMessage{key: c.Args[0]}}
	}
	return done
}

// neverStarted answers a call that was ended while it waited for its session's turn.
func (c *opened) neverStarted(ctx context.Context) *answered {
	done := &answered{open: c, selected: selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call},
		Nester: nester{c.r}}, r: c.r}}
	done.outcome, done.class = interrupt.Outcome(ctx)
	done.outcome.ErrorMessage = interrupt.NeverStarted + ": " + done.outcome.ErrorMessage
	done.outcome.Metadata = map[string]any{"started": false}
	done.outcome.Retriable = !errors.Is(context.Cause(ctx), interrupt.ErrCanceled) // a person canceled it on purpose
	return done
}

// storeFailed answers a call for which the store could not be read, possibly because the call ended meanwhile.
func (c *opened) storeFailed(ctx context.Context, err error) *answered {
	if ctx.Err() != nil {
		done := &answered{open: c, selected: selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call},
			Nester: nester{c.r}}, r: c.r}}
		done.outcome, done.class = interrupt.Outcome(ctx)
		return done
	}
	c.Env.Logger.Error().Err(err).Str("call_id", c.ID).Msg("the store could not be read for a call")
	return &answered{open: c, selected: selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call},
		Nester: nester{c.r}}, r: c.r},
		outcome: agent.Failed(agent.ErrResourceExhausted,
			"the daemon could not read what it needs for this call")}
}

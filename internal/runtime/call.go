package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/interrupt"
	"github.com/recurgentd/recurgentd/internal/runtime/progress"
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
//	run    → attempted  one run of one program (attempt.go)
//	judge  → judged     the outcome of that run (judge.go); a failed attempt leads to repair or forging (recover.go)
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
			r.o.Logger.Error().Err(err).Str("call_id", c.id).Msg("an asynchronous call was not kept")
			res = CallResult{Err: err}
		}
		result <- res
		close(result)
	}()
	return c.id, result, nil
}

// perform waits for the session's turn and takes an opened call through the remaining phases.
func (c *opened) perform(ctx context.Context) (CallResult, error) {
	defer c.close()
	if err := c.r.sessions.await(ctx, c.place); err != nil {
		return c.commit(c.neverStarted(ctx))
	}
	c.hasTurn = true
	defer c.leaveTurn()
	turn := c.r.o.Now()
	c.span.Stage("queue", c.started, turn)
	done := c.answer(ctx)
	done.stages.Queue = turn.Sub(c.started)
	return c.commit(done)
}

// leaveTurn passes the session's turn to the next call, once. The commit calls it as soon as the call has its place in
// the order, without waiting for the disk. The next call sees this call's changes, and is lost with them if they are
// lost.
func (c *opened) leaveTurn() {
	if c.hasTurn {
		c.hasTurn = false
		c.r.sessions.leave(c.session.ID)
	}
}

// answer finds the call's answer: from a setter, or from a program that it selects, runs and judges.
func (c *opened) answer(ctx context.Context) *answered {
	if key := setterKey(c.method); key != "" {
		return c.set(key)
	}
	s, err := c.choose(ctx)
	if err != nil {
		return c.storeFailed(ctx, err)
	}
	// A warm call reports no progress, so it pays nothing for events.
	if s.decision.Decision != agent.DecideRun {
		c.progress.Add(progress.Selected, s.decision.selection())
	}
	return s.serve(ctx)
}

// set answers a method named "key=": it writes the context key and runs no program.
func (c *opened) set(key string) *answered {
	done := &answered{selected: selected{opened: c, decision: Decision{Decision: agent.DecideNone,
		Reason: ReasonSetter}},
		outcome: agent.Outcome{Status: agent.StatusOK, Value: c.args[0]}}
	if c.depth == 0 {
		done.context = &agent.ContextChange{Set: map[string]json.RawMessage{key: c.args[0]}}
	}
	return done
}

// neverStarted answers a call that was ended while it waited for its session's turn.
func (c *opened) neverStarted(ctx context.Context) *answered {
	done := &answered{selected: selected{opened: c}}
	done.outcome, done.class = interrupt.Outcome(ctx)
	done.outcome.ErrorMessage = interrupt.NeverStarted + ": " + done.outcome.ErrorMessage
	done.outcome.Metadata = map[string]any{"started": false}
	done.outcome.Retriable = !errors.Is(context.Cause(ctx), interrupt.ErrCanceled) // a person canceled it on purpose
	return done
}

// storeFailed answers a call for which the store could not be read, possibly because the call ended meanwhile.
func (c *opened) storeFailed(ctx context.Context, err error) *answered {
	if ctx.Err() != nil {
		done := &answered{selected: selected{opened: c}}
		done.outcome, done.class = interrupt.Outcome(ctx)
		return done
	}
	c.r.o.Logger.Error().Err(err).Str("call_id", c.id).Msg("the store could not be read for a call")
	return &answered{selected: selected{opened: c}, outcome: agent.Failed(agent.ErrResourceExhausted,
		"the daemon could not read what it needs for this call")}
}

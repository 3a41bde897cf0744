package runtime

import (
	"cmp"
	"context"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/proof"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
)

// A nester makes the calls that programs make: in the same session, one level deeper, with an empty context that is not
// stored.
type nester struct{ r *Runtime }

// Nest implements attempt.Nester.
func (x nester) Nest(ctx context.Context, q attempt.Nesting) attempt.Nested {
	n, refused := x.open(ctx, q)
	if n == nil {
		return refused
	}
	n.Life.Begin(ctx, 0)
	defer n.Life.Cancel(nil)
	if err := x.r.Enter(&n.Call); err != nil {
		n.leaveRoom()
		return attempt.Nested{Outcome: agent.Failed(agent.ErrCanceled, err.Error())}
	}
	defer x.r.Calls.Leave(&n.Call)
	done := n.answer(&n.Life)
	a := attempt.Nested{ErrorType: done.outcome.ErrorType, Misfit: done.last.Misfit,
		Excused: attempt.Excused{Class: done.blames(), Retriable: done.outcome.Retriable}}
	a.Outcome = n.commitNested(done)
	a.NoRoom = done.last.NoRoom || storage.IsFull(&a.Outcome)
	if !a.Outcome.OK() {
		n.Tree.Writes.Return(n.Begins) // if the program retries, it is the same call again
	}
	q.Above.WeakBelow.Add(n.WeakBelow.Load())
	if done.weak {
		q.Above.WeakBelow.Add(1)
	}
	return a
}

// Refuse implements attempt.Nester.
func (x nester) Refuse(ctx context.Context, q attempt.Nesting, reason string) attempt.Nested {
	n, refused := x.open(ctx, q)
	if n == nil {
		return refused
	}
	return attempt.Nested{Outcome: n.commitNested(n.refusal(agent.Failed(agent.ErrNonSerializable, reason)))}
}

// NestDry implements attempt.Nester.
func (x nester) NestDry(ctx context.Context, q attempt.Nesting, noFetch bool) (o agent.Outcome, refused bool) {
	n := x.nested(q)
	if over := n.OverBudget(); over != "" {
		return agent.Failed(agent.ErrBudgetExceeded, over), false
	}
	s, err := n.choose(ctx)
	g := s.Decision.Generation
	switch {
	case err != nil:
		return agent.Failed(agent.ErrResourceExhausted, "the daemon could not read what it needs for this call"), false
	case s.Decision.Fallback != nil:
		g = s.Decision.Fallback
	case s.Decision.Decision != agent.DecideRun:
		return agent.Failed(agent.ErrDenied,
			"no program serves "+q.Role+"."+q.Method+", and none is forged for a dry run"), true
	}
	a, _ := s.DryRun(ctx, g, proof.Dry{ID: n.ID, CallID: n.ID, Args: n.Args, Kwargs: n.Kwargs, Denied: noFetch})
	return n.Named(a.Outcome), a.Denied
}

// blames returns the class of a failure that the call's caller is not to blame for: a failure of the call's own
// program, of the model, or of an external source, or a program that still needs approval. It returns agent.ClassNone
// otherwise: an authored error may well be about the caller's arguments.
func (a *answered) blames() agent.Class {
	switch {
	case a.outcome.OK():
	case a.Decision.Decision == agent.DecideRefuse:
		return agent.ClassExtrinsic
	case a.class == agent.ClassExtrinsic || a.class == agent.ClassIntrinsic || a.class == agent.ClassAdaptive:
		return a.class
	}
	return agent.ClassNone
}

// open opens a nested call within the budget. If the call is not made, it returns nil and the answer.
func (x nester) open(ctx context.Context, q attempt.Nesting) (*opened, attempt.Nested) {
	n := x.nested(q)
	if t, err := n.Env.Store.Tool(ctx, q.Role); err == nil && !t.ByUse {
		n.Speaker = agent.SpeakerTool
	}
	n.BeginSpan("", q.Above.Span)
	if refused := n.OverBudget(); refused != "" {
		o := agent.Failed(agent.ErrBudgetExceeded, refused)
		if n.Tree.Refused.Swap(true) {
			return nil, attempt.Nested{Outcome: o} // one refusal is recorded: further attempts add no records
		}
		return nil, attempt.Nested{Outcome: n.commitNested(n.refusal(o))}
	}
	var full *storage.FullError
	if errors.As(n.enterRoom(ctx), &full) { // the refusal is not recorded either: there is no room
		return nil, attempt.Nested{Outcome: n.Named(full.Outcome()), NoRoom: true}
	}
	return n, attempt.Nested{}
}

// nested returns the call that the program asks for, not yet started.
func (x nester) nested(q attempt.Nesting) *opened {
	c := q.Above
	n := &opened{r: x.r, Call: call.Call{Env: c.Env, Policy: c.Policy, Rules: c.Rules, Session: c.Session,
		ID: ids.New("call"), TraceID: c.TraceID, Parent: c.ID, Root: cmp.Or(c.Root, c.ID), ParentAttempt: q.Attempt,
		Depth: c.Depth + 1, Speaker: agent.SpeakerAgent, Owner: c.Owner, Operates: c.Operates,
		Inherited: c.Shown().Secrets, Role: q.Role, Method: q.Method, Args: q.Args, Kwargs: q.Kwargs,
		Asked: q.Contract, Started: c.Env.Now(), Deadline: c.Deadline, Tree: c.Tree, Begins: c.Tree.Writes.Place(),
		Fence: c.Fence, Lent: q.Lent}}
	n.Init()
	return n
}

// refusal answers a nested call that is not made.
func (c *opened) refusal(o agent.Outcome) *answered {
	return &answered{open: c, selected: selected{Against: proof.Against{Selection: call.Selection{Call: &c.Call},
		Nester: nester{c.r}}, r: c.r}, outcome: o}
}

// commitNested commits a nested call and adds its usage to the tree. If the commit fails, the calling program gets an
// error in place of the answer.
func (c *opened) commitNested(a *answered) agent.Outcome {
	defer c.leaveRoom()
	if _, err := a.commit(); err != nil {
		return agent.Failed(agent.ErrResourceExhausted, "the call could not be committed")
	}
	c.Tree.Usage.Add(a.own())
	return a.outcome
}

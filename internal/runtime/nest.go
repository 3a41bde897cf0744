package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/ids"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/storage"
)

// nest runs a call that a program makes: in the same session, one level deeper, with an empty context that is not
// stored.
func (h *host) nest(ctx context.Context, role, method string, args []json.RawMessage,
	kwargs json.RawMessage) agent.Outcome {
	n, o := h.openNested(ctx, role, method, args, kwargs)
	if n == nil {
		return o
	}
	n.Life.Begin(ctx, 0)
	defer n.Life.Cancel(nil)
	if err := n.r.enter(n); err != nil {
		n.leaveRoom()
		return agent.Failed(agent.ErrCanceled, err.Error())
	}
	defer n.r.leave(n)
	done := n.answer(&n.Life)
	h.noRoom = h.noRoom || done.last.noRoom
	if class := done.blames(); class != agent.ClassNone {
		h.excuse(done.outcome.ErrorType, class, done.outcome.Retriable)
	}
	h.miscalled = h.miscalled || done.last.misfit && !h.forwards(args, kwargs)
	o = n.commitNested(done)
	h.noRoom = h.noRoom || storage.IsFull(&o)
	if o.Authored {
		h.notesAuthored(o.ErrorType)
	}
	if !o.OK() {
		n.Tree.Writes.Return(n.Begins) // if the program retries, it is the same call again
	}
	h.call.WeakBelow.Add(n.WeakBelow.Load())
	if done.weak {
		h.call.WeakBelow.Add(1)
	}
	return o
}

// forwards reports whether a nested call may pass on the arguments of the program's own call. The caller of that call
// is then to blame for them.
func (h *host) forwards(args []json.RawMessage, kwargs json.RawMessage) bool {
	if takes := h.program.Interface; takes != nil && !takes.Open && len(takes.Parameters) == 0 {
		return false
	}
	before := len(h.call.Args) - len(args)
	return before >= 0 && agent.SameInput(args, kwargs, h.call.Args[before:], h.call.Kwargs)
}

// notesAuthored records the error type of a nested call. A program that answers with the same type passes the error on.
func (h *host) notesAuthored(errorType string) {
	if h.authored == nil {
		h.authored = map[string]bool{}
	}
	h.authored[errorType] = true
}

// blames returns the class of a failure that the call's caller is not to blame for: a failure of the call's own
// program, of the model, or of an external source, or a program that still needs approval. It returns agent.ClassNone
// otherwise: an authored error may well be about the caller's arguments.
func (a *answered) blames() agent.Class {
	switch {
	case a.outcome.OK():
	case a.decision.Decision == agent.DecideRefuse:
		return agent.ClassExtrinsic
	case a.class == agent.ClassExtrinsic || a.class == agent.ClassIntrinsic || a.class == agent.ClassAdaptive:
		return a.class
	}
	return agent.ClassNone
}

// openNested opens a nested call within the budget. If the call is not made, it returns nil and an outcome.
func (h *host) openNested(ctx context.Context, role, method string, args []json.RawMessage,
	kwargs json.RawMessage) (*opened, agent.Outcome) {
	err := agent.Names(&role, &method)
	if err == nil {
		kwargs, err = agent.KeywordArguments(kwargs)
	}
	if err != nil {
		return nil, agent.Failed(agent.ErrInvalidInput, err.Error())
	}
	n := h.nested(role, method, args, kwargs)
	if t, err := n.Env.Store.Tool(ctx, role); err == nil && !t.ByUse {
		n.Speaker = agent.SpeakerTool
	}
	n.BeginSpan("", h.call.Span)
	if refused := n.OverBudget(); refused != "" {
		o := agent.Failed(agent.ErrBudgetExceeded, refused)
		if n.Tree.Refused.Swap(true) {
			return nil, o // one refusal is recorded: further attempts add no records
		}
		return nil, n.commitNested(n.refusal(o))
	}
	var full *storage.FullError
	if errors.As(n.enterRoom(ctx), &full) { // the refusal is not recorded either: there is no room
		o := full.Outcome()
		h.noRoom = true
		return nil, n.Named(o)
	}
	return n, agent.Outcome{}
}

// nested returns the call that the program asks for, not yet started.
func (h *host) nested(role, method string, args []json.RawMessage, kwargs json.RawMessage) *opened {
	c := h.call
	n := &opened{r: h.r, Call: call.Call{Env: c.Env, Policy: c.Policy, Rules: c.Rules, Session: c.Session,
		ID: ids.New("call"), TraceID: c.TraceID, Parent: c.ID, Root: cmp.Or(c.Root, c.ID), ParentAttempt: h.attempt,
		Depth: c.Depth + 1, Speaker: agent.SpeakerAgent, Owner: c.Owner, Operates: c.Operates,
		Inherited: c.Shown().Secrets, Role: role, Method: method, Args: args, Kwargs: kwargs, Asked: h.delegated[role],
		Started: c.Env.Now(), Deadline: c.Deadline, Tree: c.Tree, Begins: c.Tree.Writes.Place(), Fence: c.Fence,
		Lent: h.lends()}}
	n.Init()
	return n
}

// refusal answers a nested call that is not made.
func (c *opened) refusal(o agent.Outcome) *answered {
	return &answered{open: c, selected: selected{Selection: Selection{Call: &c.Call}, r: c.r}, outcome: o}
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

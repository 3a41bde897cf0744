package attempt

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
)

// A Nester makes the calls that programs make.
type Nester interface {
	// Nest makes the call and waits for its answer.
	Nest(ctx context.Context, q Nesting) Nested
	// Refuse records a call that is not made, with the reason.
	Refuse(ctx context.Context, q Nesting, reason string) Nested
	// NestDry answers with the program that serves the call. Nothing is forged, kept or counted. refused reports that
	// the call, or something in it, was denied.
	NestDry(ctx context.Context, q Nesting, noFetch bool) (o agent.Outcome, refused bool)
}

// A Nesting describes a call that a program makes.
type Nesting struct {
	Above        *call.Call // the call that the program runs for
	Attempt      string     // attempt of the program
	Role, Method string
	Args         []json.RawMessage
	Kwargs       json.RawMessage
	Contract     *agent.Contract // contract of the delegation; nil if the program did not delegate
	Lent         []*files.Draft  // files that the call may read
}

// A Nested is the answer of a nested call.
type Nested struct {
	Outcome agent.Outcome
	NoRoom  bool // a storage share had no room for something that was to be kept
	Misfit  bool // the arguments did not fit, and no program ran
	// error type of the failure before the commit; if Excused has a class, the program is not to blame
	ErrorType string
	Excused   Excused
}

// nesting describes a call of the program.
func (h *Host) nesting(role, method string, args []json.RawMessage, kwargs json.RawMessage) Nesting {
	return Nesting{Above: h.For, Attempt: h.Attempt, Role: role, Method: method, Args: args, Kwargs: kwargs,
		Contract: h.Delegated[role], Lent: h.lends()}
}

// checkedNesting is nesting with names and keywords checked and in their normal form.
func (h *Host) checkedNesting(role, method string, args []json.RawMessage,
	kwargs json.RawMessage) (q Nesting, err error) {
	if err = agent.Names(&role, &method); err == nil {
		kwargs, err = agent.KeywordArguments(kwargs)
	}
	return h.nesting(role, method, args, kwargs), err
}

// nest makes a call of the program and records the failures that its answer excuses.
func (h *Host) nest(ctx context.Context, role, method string, args []json.RawMessage,
	kwargs json.RawMessage) agent.Outcome {
	q, err := h.checkedNesting(role, method, args, kwargs)
	if err != nil {
		return agent.Failed(agent.ErrInvalidInput, err.Error())
	}
	n := h.Nester.Nest(ctx, q)
	h.noRoom = h.noRoom || n.NoRoom
	if n.Excused.Class != agent.ClassNone {
		h.excuse(n.ErrorType, n.Excused.Class, n.Excused.Retriable)
	}
	h.miscalled = h.miscalled || n.Misfit && !h.forwards(args, kwargs)
	if n.Outcome.Authored {
		h.notesAuthored(n.Outcome.ErrorType)
	}
	return n.Outcome
}

// forwards reports whether a nested call may pass on the arguments of the program's own call. The caller of that call
// is then to blame for them.
func (h *Host) forwards(args []json.RawMessage, kwargs json.RawMessage) bool {
	if takes := h.program.Interface; takes != nil && !takes.Open && len(takes.Parameters) == 0 {
		return false
	}
	before := len(h.For.Args) - len(args)
	return before >= 0 && agent.SameInput(args, kwargs, h.For.Args[before:], h.For.Kwargs)
}

// notesAuthored records the error type of a nested call. A program that answers with the same type passes the error on.
func (h *Host) notesAuthored(errorType string) {
	if h.authored == nil {
		h.authored = map[string]bool{}
	}
	h.authored[errorType] = true
}

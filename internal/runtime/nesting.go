package runtime

import (
	"context"
	"encoding/json"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
	"github.com/recurgentd/recurgentd/internal/runtime/files"
)

// A runNester makes the calls that programs make.
type runNester interface {
	// Nest makes the call and waits for its answer.
	Nest(ctx context.Context, q nesting) nested
	// Refuse records a call that is not made for that reason.
	Refuse(ctx context.Context, q nesting, reason string) nested
	// NestDry answers with the program that serves the call. Nothing is forged, kept or counted. refused reports that
	// the call, or something in it, was denied.
	NestDry(ctx context.Context, q nesting, noFetch bool) (o agent.Outcome, refused bool)
}

// A nesting describes a call that a program makes.
type nesting struct {
	above        *call.Call // the call that the program runs for
	attempt      string     // of the program
	role, method string
	args         []json.RawMessage
	kwargs       json.RawMessage
	contract     *agent.Contract // that the program delegated with; nil if it did not
	lent         []*files.Draft  // files that the call may read
}

// A nested is the answer of a nested call.
type nested struct {
	outcome agent.Outcome
	noRoom  bool // a storage share had no room for something that was to be kept
	misfit  bool // the arguments did not fit, and no program ran
	// of the failure, before the commit; the program is not to blame if its class is set
	errorType string
	excused   excused
}

// nesting describes a call of the program.
func (h *host) nesting(role, method string, args []json.RawMessage, kwargs json.RawMessage) nesting {
	return nesting{above: h.call, attempt: h.attempt, role: role, method: method, args: args, kwargs: kwargs,
		contract: h.delegated[role], lent: h.lends()}
}

// checkedNesting is nesting with names and keywords checked and in their normal form.
func (h *host) checkedNesting(role, method string, args []json.RawMessage,
	kwargs json.RawMessage) (q nesting, err error) {
	if err = agent.Names(&role, &method); err == nil {
		kwargs, err = agent.KeywordArguments(kwargs)
	}
	return h.nesting(role, method, args, kwargs), err
}

// nest makes a call of the program, and notes what its answer excuses.
func (h *host) nest(ctx context.Context, role, method string, args []json.RawMessage,
	kwargs json.RawMessage) agent.Outcome {
	q, err := h.checkedNesting(role, method, args, kwargs)
	if err != nil {
		return agent.Failed(agent.ErrInvalidInput, err.Error())
	}
	n := h.nester.Nest(ctx, q)
	h.noRoom = h.noRoom || n.noRoom
	if n.excused.class != agent.ClassNone {
		h.excuse(n.errorType, n.excused.class, n.excused.retriable)
	}
	h.miscalled = h.miscalled || n.misfit && !h.forwards(args, kwargs)
	if n.outcome.Authored {
		h.notesAuthored(n.outcome.ErrorType)
	}
	return n.outcome
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

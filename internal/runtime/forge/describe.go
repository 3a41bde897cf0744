package forge

import (
	"cmp"
	"errors"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// interfaceHint accompanies every refusal of an interface.
const interfaceHint = "Declare in parameters exactly what the program reads, in positional order, or change the program."

// describe determines the interface of a program that passed the gate. A declaration that does not fit the program is
// refused while the call has a retry left. After that the inferred interface is used, because a correct program is not
// given up for its description. own means that the program was written for this call, whose arguments it must accept. A
// successor that would break callers is refused unless a person asked for the change.
func (w *writer) describe(q Request, reply provider.Reply, facts *report.Facts,
	own bool) (*agent.Interface, *sandbox.Failure) {
	out, err := programs.Declared(reply.Declaration, facts)
	var order *agent.OrderError
	if errors.As(err, &order) {
		if own && len(w.Args) > order.Place { // nobody knows which parameter the argument is for
			return nil, refusedInterface(err)
		}
		err = nil
	}
	var beyond error
	if err == nil {
		w.suit(out, facts)
		if own {
			beyond = w.untaken(q, out)
		}
	}
	switch wrong := cmp.Or(err, beyond); {
	case wrong != nil && w.guardrails > 0:
		return nil, refusedInterface(wrong)
	case err != nil, beyond != nil && !facts.UsesArgs: // the call may not need arguments that the program never reads
		out = programs.Inferred(facts)
		w.suit(out, facts)
	}
	if q.Predecessor == nil || !facts.UsesArgs || w.PersonAsked() {
		return out, nil
	}
	out.Succeed(q.Predecessor.Interface)
	if broken := out.Breaks(q.Predecessor.Interface); broken != "" {
		return nil, refusedInterface(errors.New(broken + "; callers of the program that it replaces rely on " +
			q.Predecessor.Interface.Signature(w.Method)))
	}
	return out, nil
}

// refusedInterface returns the gate's failure for an interface that does not fit.
func refusedInterface(err error) *sandbox.Failure {
	return &sandbox.Failure{Type: agent.ErrInvalidCode, Message: "interface: " + err.Error(), Hint: interfaceHint,
		Detail: "interface"}
}

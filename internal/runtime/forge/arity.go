package forge

import (
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/programs"
	"github.com/recurgentd/recurgentd/internal/runtime/selection"
)

// suit adjusts the interface of a new program to the call that it was written for, as far as the program allows. A
// parameter takes the name that the call uses for it. A parameter that the call lacks becomes optional if the program
// can do without it.
func (w *writer) suit(out *agent.Interface, facts *report.Facts) {
	fit := w.Fit(out)
	out.Adopt(len(w.Args), w.Kwargs, fit.Unknown)
	if out.Binds() {
		fit = w.Fit(out)
		out.Relax(fit.Missing, programs.Inferred(facts))
	}
}

// untaken returns an error that describes the arguments of its own call that a new program does not declare, or nil. A
// successor must declare them if its predecessor accepts the call. The check is skipped if the program was requested
// because of such arguments, or answers one call only: it may turn out not to need them.
func (w *writer) untaken(q Request, out *agent.Interface) error {
	fit := w.Fit(out)
	if !fit.Beyond() && len(fit.Skipped) == 0 || !w.Binds(out) || q.Predecessor != nil && !w.ranOn(q) {
		return nil
	}
	var wrong []string
	if len(fit.Skipped) > 0 {
		wrong = append(wrong, fmt.Sprintf(
			"the call leaves out %s and gives a later one by name: read it by its name too",
			strings.Join(fit.Skipped, ", ")))
	}
	if fit.Surplus > 0 {
		wrong = append(wrong, fmt.Sprintf(
			"the call gives %d positional arguments, of which %d %s declared: read call.Arg(%d, ...) too and declare it", len(w.Args), len(out.Parameters), isAre(len(out.Parameters)), len(out.Parameters)))
	}
	if len(fit.Unknown) > 0 {
		wrong = append(wrong, fmt.Sprintf("the call gives by name what is not declared: read and declare %s",
			strings.Join(fit.Unknown, ", ")))
	}
	return fmt.Errorf("parameters: %s", strings.Join(wrong, "; "))
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// ranOn reports whether the predecessor of the requested program accepts calls with this call's arguments.
func (w *writer) ranOn(q Request) bool {
	if q.Trigger == Widening || w.Decision.Reason == selection.ReasonArgsIgnored ||
		w.Decision.Reason == selection.ReasonNotCacheable {
		return false
	}
	fit := w.Fit(q.Predecessor.Interface)
	return !w.Binds(q.Predecessor.Interface) || !fit.Beyond()
}

// ReasonUnknown is the reason of a repair that widens an interface, as Widening has it.
const ReasonUnknown = "unknown_keywords"

// Widening is the trigger of a repair that widens an interface.
const Widening = "repair:" + ReasonUnknown

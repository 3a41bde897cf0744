package runtime

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// Bounds of what an outcome says of parameters and keywords.
const (
	maxUnknown       = 16
	maxUnknownLength = 64
	maxShownSchema   = 500
	maxSignature     = 400
)

// binds reports whether a call of the method has to fit the interface. The program of a dispatch method is written for the one call.
func (c *opened) binds(f *agent.Interface) bool { return f.Binds() && !c.dispatch() }

// fit compares the call's arguments with the interface. The history input of a signature does not count.
func (c *opened) fit(f *agent.Interface) agent.Fit {
	positional := len(c.args)
	if c.historyArgument != "" && c.historyArgument == fmt.Sprint("/args/", positional-1) {
		positional--
	}
	t := f.Fit(positional, c.kwargs)
	t.Unknown = c.clipKeywords(t.Unknown)
	return t
}

// clipKeywords bounds what is said of keywords, and leaves out the one that holds the history input.
func (c *opened) clipKeywords(names []string) []string {
	if names == nil {
		return nil
	}
	out := make([]string, 0, min(len(names), maxUnknown))
	for _, name := range names {
		if "/kwargs/"+name != c.historyArgument && len(out) < maxUnknown {
			out = append(out, Clip(name, maxUnknownLength))
		}
	}
	return out
}

// fitOf compares the input of a dry run with the interface, as fit does that of a call.
func (c *opened) fitOf(f *agent.Interface, args []json.RawMessage, kwargs json.RawMessage) agent.Fit {
	t := f.Fit(len(args), kwargs)
	t.Unknown = c.clipKeywords(t.Unknown)
	return t
}

// misfits is the outcome of a call whose arguments do not fit what its program declares.
func misfits(fit *agent.Fit, takes *agent.Interface, method string) agent.Outcome {
	return agent.Failed(agent.ErrInvalidInput, "the arguments do not fit "+Clip(takes.Signature(method), maxSignature)+
		". "+fit.String())
}

// explain adds to the outcome what a caller needs in order to call the method right: what the program does not read of the call and, where it
// could not work with the arguments, its parameters.
func (j *judged) explain() {
	if len(j.fit.Unknown) > 0 {
		j.outcome.Metadata = with(j.outcome.Metadata, "unknown_keywords", j.fit.Unknown)
	}
	if j.fit.Surplus > 0 {
		j.outcome.Metadata = with(j.outcome.Metadata, "surplus_arguments", j.fit.Surplus)
	}
	if j.misfit && len(j.fit.Missing) > 0 {
		j.outcome.Metadata = with(j.outcome.Metadata, "missing_parameters", j.fit.Missing)
	}
	if j.takes != nil && j.outcome.ErrorType == agent.ErrInvalidInput && (j.outcome.Authored || j.misfit) {
		j.outcome.Metadata = with(j.outcome.Metadata, "parameters", shownParameters(j.takes))
	}
}

// suit makes the interface of a new program fit the call that it was written for, as far as the program does: it gives a parameter the call's name for it, and
// what the call lacks and the program does without is optional.
func (w *writer) suit(out *agent.Interface, facts *report.Facts) {
	fit := w.fit(out)
	out.Adopt(len(w.args), w.kwargs, fit.Unknown)
	if out.Binds() {
		fit = w.fit(out)
		out.Relax(fit.Missing, Inferred(facts))
	}
}

// untaken describes the arguments of its own call that a new program does not declare. A successor is held to that where its predecessor takes the call. A
// program that was asked for because of such arguments, or that answers one call only, may turn out not to need them.
func (w *writer) untaken(q forgeRequest, out *agent.Interface) error {
	fit := w.fit(out)
	if !fit.Beyond() || !w.binds(out) || q.predecessor != nil && !w.ranOn(q) {
		return nil
	}
	var wrong []string
	if fit.Surplus > 0 {
		wrong = append(wrong, fmt.Sprintf(
			"the call gives %d positional arguments, of which %d %s declared: read call.Arg(%d, ...) too and declare it", len(w.args), len(out.Parameters), isAre(len(out.Parameters)), len(out.Parameters)))
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

// ranOn reports whether the predecessor of the program asked for answers calls with the arguments of this one.
func (w *writer) ranOn(q forgeRequest) bool {
	if q.trigger == widening || w.decision.Reason == ReasonArgsIgnored || w.decision.Reason == ReasonNotCacheable {
		return false
	}
	fit := w.fit(q.predecessor.Interface)
	return !w.binds(q.predecessor.Interface) || !fit.Beyond()
}

// ignoredAgain counts the answer of a program that was to read the call's arguments and does not. It displaces nothing: the stored one answers calls without them.
// Where both answered alike before, such arguments are needless, and the model is not asked about them again. A program that holds the arguments themselves shows nothing.
func (rec *recovery) ignoredAgain(cand *candidate, j judged) {
	if j.class == agent.ClassOK {
		rec.countUnkept(rec.artifact)
	}
	if g := rec.decision.Generation; g != nil && j.class == agent.ClassOK && len(cand.proof.kept) > 0 &&
		cand.generation.CacheabilityReason == cacheIgnored {
		rec.changes = append(rec.changes, agent.ArtifactChange{Role: rec.role, MethodName: rec.method, At: rec.started,
			ResultOf: g.ID, Needless: agent.ShapeOfArguments(len(rec.args), rec.kwargs)})
	}
}

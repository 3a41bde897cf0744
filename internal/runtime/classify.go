package runtime

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Evidence is what is known of a run that did not end in a value which kept its contract. Classes come from it, never
// from what a program says of itself.
type Evidence struct {
	Authored     bool
	ErrorType    string
	Interrupted  bool        // the daemon's doing: client gone, shutdown, spawn failure
	WaitingEnded bool        // a timeout whose time was spent waiting for an external source
	PassedOn     agent.Class // of a failure that the program returned and is not to blame for
	ModelFailed  bool        // the model gave the program no answer that fits
	NoRoom       bool        // what the program wanted to keep had no room in a share
	Fetches      []sandbox.Fetch
	Nested       map[string]string // shapes of nested values, by role.method
	Shapes       map[string]string // of fetched bodies and nested values at the last ok run, by shapeKey
	Answered     bool              // the program once answered this input ok, from a source
	Streak       int               // results in a row before this one that may come of a changed source
	DriftAfter   int               // how many in a row count as drift; 0: 2
}

// classify gives the failure class of the evidence.
func classify(e Evidence) agent.Class {
	switch {
	case e.Interrupted:
		return agent.ClassNone
	case slices.ContainsFunc(e.Fetches, outsideFailed), e.ModelFailed, e.NoRoom, e.PassedOn == agent.ClassExtrinsic:
		return agent.ClassExtrinsic
	case e.ErrorType == agent.ErrTimeout && e.WaitingEnded:
		return agent.ClassExtrinsic
	case e.ErrorType == agent.ErrParseFailed && goodFetch(e), !e.Authored && drifted(e):
		return agent.ClassAdaptive
	case Drifting(e) && e.Streak+1 >= max(1, cmp.Or(e.DriftAfter, defaultDriftAfter)):
		return agent.ClassAdaptive
	case e.Authored:
		return agent.ClassAuthored
	}
	return agent.ClassIntrinsic
}

// defaultDriftAfter is the policy's drift_after where evidence names none.
const defaultDriftAfter = 2

// Drifting reports whether the failure may come of a source that changed, judged by behaviour: after a good fetch from a
// source that the program used to answer from, for an input that it once answered ok, or with another shape than then.
// Honest errors for new inputs are no drift.
func Drifting(e Evidence) bool {
	return !e.Interrupted && usedSource(e) && (e.Answered || drifted(e)) && !slices.ContainsFunc(e.Fetches, outsideFailed)
}

// usedSource reports whether something came in well from a source of the last ok run.
func usedSource(e Evidence) bool {
	for _, f := range e.Fetches {
		if _, used := e.Shapes[shapeKey(f)]; used && good(f) {
			return true
		}
	}
	return false
}

func goodFetch(e Evidence) bool { return slices.ContainsFunc(e.Fetches, good) }

func good(f sandbox.Fetch) bool { return f.Status >= 200 && f.Status < 300 }

// outsideFailed reports a fetch without an answer, or one answered 429 or 5xx. A fetch that policy denied is the
// program's own doing.
func outsideFailed(f sandbox.Fetch) bool {
	return f.Status == 0 && f.ErrorKind != "denied" || f.Status == 429 || f.Status >= 500
}

// overLimit reports a fetch that ran into its time or size limit. An error that a program returns over it is not the
// program's own.
func overLimit(f sandbox.Fetch) bool { return f.ErrorKind == "timeout" || f.ErrorKind == "too_large" }

// drifted reports whether something that came in well has another shape than at the last ok run.
func drifted(e Evidence) bool {
	for _, f := range e.Fetches {
		if was, ok := e.Shapes[shapeKey(f)]; ok && good(f) && was != f.Shape {
			return true
		}
	}
	for tool, shape := range e.Nested {
		if was, ok := e.Shapes[tool]; ok && was != shape {
			return true
		}
	}
	return false
}

// shapeKey names a source: its URL without query and fragment.
func shapeKey(f sandbox.Fetch) string { return withoutQuery(f.URL) }

func withoutQuery(url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		return url[:i]
	}
	return url
}

// changedSources lists the sources whose change a failing run may come of, as they were asked for and as they answered: of
// those that the program used to answer from the ones with another shape, or all where none has.
func changedSources(e Evidence) (out []string) {
	var used []string
	for _, f := range e.Fetches {
		was, known := e.Shapes[shapeKey(f)]
		if !known || !good(f) {
			continue
		}
		names := []string{shapeKey(f)}
		if f.Asked != "" {
			names = append(names, withoutQuery(f.Asked))
		}
		used = append(used, names...)
		if was != f.Shape {
			out = append(out, names...)
		}
	}
	if out == nil {
		out = used
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sourcesOf lists the sources of the generation's answers, and those that its latest failed runs fetched.
func sourcesOf(a *agent.Artifact, g *agent.Generation) []string {
	out := slices.Collect(maps.Keys(g.Shapes))
	for _, f := range a.Failures {
		for _, s := range f.Sources {
			if f.Generation == g.ID {
				out = append(out, withoutQuery(s.URL))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxShapes bounds what is remembered of the sources of one run.
const maxShapes = 16

// outlinesOf are the shapes of what was fetched, in words.
func outlinesOf(fetches []sandbox.Fetch) map[string]string {
	var out map[string]string
	for _, f := range fetches {
		if f.Outline == "" || !good(f) || len(out) >= maxShapes {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[shapeKey(f)] = f.Outline
	}
	return out
}

// shapesOf remembers the shapes of an ok run, at most 16 of them; nil when nothing came in.
func shapesOf(fetches []sandbox.Fetch, nested map[string]string) map[string]string {
	if len(fetches) == 0 && len(nested) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, f := range fetches {
		if len(out) < maxShapes && good(f) {
			out[shapeKey(f)] = f.Shape
		}
	}
	for tool, shape := range nested {
		if len(out) < maxShapes {
			out[tool] = shape
		}
	}
	return out
}

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
	Outlines     map[string]string // of the bodies, in words
	Words        map[string]bool   // of the program's texts: the names in markup that count
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

// Drifting reports whether the failure may come of a source that changed, after a good fetch from a source that the program used to answer from:
// what came in has another shape than then, or the program cannot read it, for an input that it once answered ok. An honest error about data of
// the shape of always is no drift, however often.
func Drifting(e Evidence) bool {
	return !e.Interrupted && usedSource(e) && (drifted(e) || e.Answered && unreadable(e)) &&
		!slices.ContainsFunc(e.Fetches, outsideFailed)
}

// unreadable reports whether the program could not read what it had: it says so, panicked, or returned an error that is not its own.
func unreadable(e Evidence) bool {
	return e.ErrorType == agent.ErrParseFailed || !e.Authored &&
		(e.ErrorType == agent.ErrExecution || e.ErrorType == agent.ErrTool)
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
		if _, ok := e.Shapes[shapeKey(f)]; ok && good(f) && !e.keeps(&f) {
			return true
		}
	}
	for tool, shape := range e.Nested {
		if was, ok := e.Shapes[tool]; ok && !keepsShape(was, shape) {
			return true
		}
	}
	return false
}

// keeps reports whether what came in has the shape that the source had at the last ok run.
func (e *Evidence) keeps(f *sandbox.Fetch) bool {
	key := shapeKey(*f)
	return f.Keeps(e.Shapes[key], e.Outlines[key], e.Words)
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
		if _, known := e.Shapes[shapeKey(f)]; !known || !good(f) {
			continue
		}
		names := []string{shapeKey(f)}
		if f.Asked != "" {
			names = append(names, withoutQuery(f.Asked))
		}
		used = append(used, names...)
		if !e.keeps(&f) {
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

// remembered are the shapes of an ok run and their outlines, at most 16 sources; nil when nothing came in. Where a source still has the shape that the
// same owner's evidence holds, the fuller form stays: an empty list says less than a full one.
func (e *Evidence) remembered(same bool) (shapes, outlines map[string]string) {
	if len(e.Fetches) == 0 && len(e.Nested) == 0 {
		return nil, nil
	}
	shapes = map[string]string{}
	for i := range e.Fetches {
		f := &e.Fetches[i]
		if !good(*f) || len(shapes) >= maxShapes {
			continue
		}
		key, form, outline := shapeKey(*f), f.Form(e.Words), f.Outline
		if was, known := e.Shapes[key]; known && same && len(was) >= len(form) && e.keeps(f) {
			form, outline = was, e.Outlines[key]
		}
		if shapes[key] = form; outline != "" {
			if outlines == nil {
				outlines = map[string]string{}
			}
			outlines[key] = outline
		}
	}
	for tool, shape := range e.Nested {
		if len(shapes) < maxShapes {
			shapes[tool] = shape
		}
	}
	return shapes, outlines
}

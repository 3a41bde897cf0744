// Package classify derives the class of a failure from evidence: what a run received from external sources and from
// nested calls, compared with what the program received at its last good run. It trusts nothing that a program reports
// about itself, and knows nothing about calls, repairs or the store.
package classify

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
)

// Evidence describes a run that did not end in a value that keeps its contract. The failure class is derived from it,
// never from what a program reports about itself.
type Evidence struct {
	Authored     bool
	ErrorType    string
	Interrupted  bool        // caused by the daemon: client gone, shutdown, spawn failure
	WaitingEnded bool        // a timeout that ended a wait for an external source
	PassedOn     agent.Class // of a failure that the program returned but is not to blame for
	ModelFailed  bool        // the model gave the program no valid answer
	NoRoom       bool        // a storage share had no room for what the program wanted to keep
	Fetches      []sandbox.Fetch
	Nested       map[string]string // shapes of nested values, by role.method
	Shapes       map[string]string // shapes of fetched bodies and nested values at the last ok run, by source
	Outlines     map[string]string // outlines of the bodies: their shapes in words
	Words        map[string]bool   // names in markup that count, since they occur in the program's text
	Answered     bool              // the program once answered this input ok, from a source
	Streak       int               // preceding results in a row that may be due to a changed source
	DriftAfter   int               // results in a row that count as drift; 0 means defaultDriftAfter
}

// Class returns the failure class of the evidence.
func Class(e Evidence) agent.Class {
	switch {
	// The order matters. An interruption proves nothing, and an outage excuses the program, whatever error it ended in.
	case e.Interrupted:
		return agent.ClassNone
	case slices.ContainsFunc(e.Fetches, OutsideFailed), e.ModelFailed, e.NoRoom, e.PassedOn == agent.ClassExtrinsic:
		return agent.ClassExtrinsic
	case e.ErrorType == agent.ErrTimeout && e.WaitingEnded:
		return agent.ClassExtrinsic
	// The data arrived but does not fit the program: repair it for the new shape.
	case e.ErrorType == agent.ErrParseFailed && goodFetch(e), !e.Authored && drifted(e):
		return agent.ClassAdaptive
	case Drifting(e) && e.Streak+1 >= max(1, cmp.Or(e.DriftAfter, defaultDriftAfter)):
		return agent.ClassAdaptive
	case e.Authored:
		return agent.ClassAuthored
	}
	return agent.ClassIntrinsic
}

// defaultDriftAfter applies if the evidence has no DriftAfter.
const defaultDriftAfter = 2

// Drifting reports whether the failure may be due to a source that changed. It takes a good fetch from a source that
// the program used to answer from. In addition, either the response has another shape than before, or the program
// cannot read it for an input that it once answered ok. An honest error about data of the usual shape is not drift,
// however often it occurs.
func Drifting(e Evidence) bool {
	return !e.Interrupted && usedSource(e) && (drifted(e) || e.Answered && unreadable(e)) &&
		!slices.ContainsFunc(e.Fetches, OutsideFailed)
}

// unreadable reports whether the program could not read its data: it reported that, panicked, or returned an error that
// it did not author.
func unreadable(e Evidence) bool {
	return e.ErrorType == agent.ErrParseFailed || !e.Authored &&
		(e.ErrorType == agent.ErrExecution || e.ErrorType == agent.ErrTool)
}

// usedSource reports whether a source of the last ok run answered well.
func usedSource(e Evidence) bool {
	for _, f := range e.Fetches {
		if _, used := e.Shapes[Source(f)]; used && good(f) {
			return true
		}
	}
	return false
}

func goodFetch(e Evidence) bool { return slices.ContainsFunc(e.Fetches, good) }

// good reports whether the fetch was answered with a 2xx status.
func good(f sandbox.Fetch) bool { return f.Status >= 200 && f.Status < 300 }

// OutsideFailed reports whether the fetch got no answer, or a status of 429 or at least 500. A fetch that policy denied
// is the program's own doing.
func OutsideFailed(f sandbox.Fetch) bool {
	return f.Status == 0 && f.ErrorKind != "denied" || f.Status == 429 || f.Status >= 500
}

// OverLimit reports whether the fetch ran into its time or size limit. An error that a program returns because of it
// does not count as authored.
func OverLimit(f sandbox.Fetch) bool { return f.ErrorKind == "timeout" || f.ErrorKind == "too_large" }

// drifted reports whether a good response or a nested value has another shape than at the last ok run.
func drifted(e Evidence) bool {
	for _, f := range e.Fetches {
		if _, ok := e.Shapes[Source(f)]; ok && good(f) && !e.keeps(&f) {
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

// keeps reports whether the response has the shape that its source had at the last ok run.
func (e *Evidence) keeps(f *sandbox.Fetch) bool {
	key := Source(*f)
	return f.Keeps(e.Shapes[key], e.Outlines[key], e.Words)
}

// Source returns the name of a source: its URL without query and fragment.
func Source(f sandbox.Fetch) string { return WithoutQuery(f.URL) }

// WithoutQuery returns the URL without query and fragment.
func WithoutQuery(url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		return url[:i]
	}
	return url
}

// ChangedSources returns the sources whose change may explain a failing run, under the URLs that were requested and
// those that answered. It considers the sources that the program used to answer from. It returns those with another
// shape, or all of them if every shape is the same.
func ChangedSources(e Evidence) (out []string) {
	var used []string
	for _, f := range e.Fetches {
		if _, known := e.Shapes[Source(f)]; !known || !good(f) {
			continue
		}
		names := []string{Source(f)}
		if f.Asked != "" {
			names = append(names, WithoutQuery(f.Asked))
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

// SourcesOf returns the sources of the generation's answers and of its latest failed runs.
func SourcesOf(a *agent.Artifact, g *agent.Generation) []string {
	out := slices.Collect(maps.Keys(g.Shapes))
	for _, f := range a.Failures {
		for _, s := range f.Sources {
			if f.Generation == g.ID {
				out = append(out, WithoutQuery(s.URL))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// maxShapes bounds the number of sources whose shapes are kept from one run.
const maxShapes = 16

// Remembered returns the shapes and the outlines of an ok run, for at most maxShapes sources, or nil if nothing was
// fetched or called. same reports that the stored shapes belong to the same owner. In that case a fuller stored shape
// stays if the source still keeps it: an empty list shows less than a full one.
func (e *Evidence) Remembered(same bool) (shapes, outlines map[string]string) {
	if len(e.Fetches) == 0 && len(e.Nested) == 0 {
		return nil, nil
	}
	shapes = map[string]string{}
	for i := range e.Fetches {
		f := &e.Fetches[i]
		if !good(*f) || len(shapes) >= maxShapes {
			continue
		}
		key, form, outline := Source(*f), f.Form(e.Words), f.Outline
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

package store

import (
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// SameBody reports whether a change left the artifact as it was, except for counters, states and streaks. Artifacts are
// never changed in place, so comparing slices and pointers by identity is enough. It may report false for equal
// artifacts.
func SameBody(a, b *agent.Artifact) bool {
	return a.Code == b.Code && len(a.Generations) == len(b.Generations) && a.Manifest == b.Manifest &&
		sameList(a.Rejections, b.Rejections) && sameList(a.Displaced, b.Displaced) &&
		sameList(a.Examples, b.Examples) &&
		sameList(a.Verdicts, b.Verdicts) && sameList(a.Failures, b.Failures) && sameList(a.Drifts, b.Drifts) &&
		slices.EqualFunc(a.Generations, b.Generations, sameProgram)
}

func sameProgram(g, h *agent.Generation) bool {
	return g == h || g.ID == h.ID && g.Code == h.Code && g.Interface == h.Interface && g.Effects == h.Effects &&
		g.MadeFor == h.MadeFor && g.Asked == h.Asked &&
		sameList(g.Facts, h.Facts) && sameList(g.ChangedAnswers, h.ChangedAnswers) &&
		sameList(g.SolverShape, h.SolverShape) &&
		sameList(g.Fixtures, h.Fixtures) && maps.Equal(g.Shapes, h.Shapes) && maps.Equal(g.Outlines, h.Outlines)
}

// sameList reports whether two slices are the same, not only equal.
func sameList[V any](a, b []V) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

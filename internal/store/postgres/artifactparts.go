package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// An artifact is stored in two parts: its body, which is large and which few changes touch, and its head, which is the rest: counters, states
// and streaks, which each counted call changes. The parts share the type, with the other's members zero.

// headOf returns the head.
func headOf(a *agent.Artifact) *agent.Artifact {
	head := *a
	head.Code, head.Rejections, head.Displaced, head.Examples, head.Verdicts, head.Failures, head.Drifts, head.Manifest = "", nil, nil, nil, nil, nil, nil, nil
	head.Generations = make([]*agent.Generation, len(a.Generations))
	for i, g := range a.Generations {
		x := *g
		x.Code, x.Facts, x.ChangedAnswers, x.SolverShape, x.Interface, x.Shapes, x.Outlines, x.Fixtures, x.Effects = "", nil, nil, nil, nil, nil, nil, nil, nil
		head.Generations[i] = &x
	}
	return &head
}

// bodyOf returns the body.
func bodyOf(a *agent.Artifact) *agent.Artifact {
	body := &agent.Artifact{Code: a.Code, Rejections: a.Rejections, Displaced: a.Displaced, Examples: a.Examples, Verdicts: a.Verdicts,
		Failures: a.Failures, Drifts: a.Drifts, Manifest: a.Manifest, Generations: make([]*agent.Generation, len(a.Generations))}
	for i, g := range a.Generations {
		body.Generations[i] = &agent.Generation{ID: g.ID, Code: g.Code, Facts: g.Facts, ChangedAnswers: g.ChangedAnswers, SolverShape: g.SolverShape,
			Interface: g.Interface, Shapes: g.Shapes, Outlines: g.Outlines, Fixtures: g.Fixtures, Effects: g.Effects}
	}
	return body
}

// join makes an artifact of its parts.
func join(head, body *agent.Artifact) (*agent.Artifact, error) {
	a := *head
	a.Code, a.Rejections, a.Displaced, a.Examples, a.Verdicts, a.Failures, a.Drifts, a.Manifest = body.Code, body.Rejections, body.Displaced, body.Examples,
		body.Verdicts, body.Failures, body.Drifts, body.Manifest
	a.Generations = make([]*agent.Generation, len(head.Generations))
	for i, h := range head.Generations {
		if h == nil || i >= len(body.Generations) || body.Generations[i] == nil || body.Generations[i].ID != h.ID {
			return nil, fmt.Errorf("the parts of artifact %s are of different changes", head)
		}
		g, b := *h, body.Generations[i]
		g.Code, g.Facts, g.ChangedAnswers, g.SolverShape, g.Interface = b.Code, b.Facts, b.ChangedAnswers, b.SolverShape, b.Interface
		g.Shapes, g.Outlines, g.Fixtures, g.Effects = b.Shapes, b.Outlines, b.Fixtures, b.Effects
		a.Generations[i] = &g
	}
	return &a, nil
}

// sameBody reports whether a change left the body as it was. Values of artifacts are never changed in place, so that lists and pointers are
// compared, not what they hold; where it is not sure it says no.
func sameBody(a, b *agent.Artifact) bool {
	return a.Code == b.Code && len(a.Generations) == len(b.Generations) && a.Manifest == b.Manifest &&
		sameList(a.Rejections, b.Rejections) && sameList(a.Displaced, b.Displaced) && sameList(a.Examples, b.Examples) &&
		sameList(a.Verdicts, b.Verdicts) && sameList(a.Failures, b.Failures) && sameList(a.Drifts, b.Drifts) &&
		slices.EqualFunc(a.Generations, b.Generations, sameProgram)
}

func sameProgram(g, h *agent.Generation) bool {
	return g == h || g.ID == h.ID && g.Code == h.Code && g.Interface == h.Interface && g.Effects == h.Effects &&
		sameList(g.Facts, h.Facts) && sameList(g.ChangedAnswers, h.ChangedAnswers) && sameList(g.SolverShape, h.SolverShape) &&
		sameList(g.Fixtures, h.Fixtures) && maps.Equal(g.Shapes, h.Shapes) && maps.Equal(g.Outlines, h.Outlines)
}

// sameList reports whether two lists are one.
func sameList[V any](a, b []V) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// decodeArtifact reads an artifact from its parts.
func decodeArtifact(head, body []byte) (*agent.Artifact, error) {
	var h, b agent.Artifact
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, fmt.Errorf("stored artifact: %w", err)
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("stored body of artifact %s: %w", &h, err)
	}
	return join(&h, &b)
}

package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// An artifact is stored in two parts, because each counted call changes its counters, states and streaks, and few
// changes touch the rest, which is large. The head has the former, the body the latter. Both parts use the type
// agent.Artifact, with the members of the other part zero.

// headOf returns an artifact's head.
func headOf(a *agent.Artifact) *agent.Artifact {
	head := *a
	head.Code, head.Rejections, head.Displaced, head.Examples, head.Verdicts, head.Failures, head.Drifts, head.Manifest = "", nil, nil, nil, nil, nil, nil, nil
	head.Generations = make([]*agent.Generation, len(a.Generations))
	for i, g := range a.Generations {
		x := *g
		x.Code, x.Facts, x.ChangedAnswers, x.SolverShape, x.Interface, x.Shapes, x.Outlines, x.Fixtures, x.Effects, x.MadeFor, x.Asked = "", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
		head.Generations[i] = &x
	}
	return &head
}

// bodyOf returns an artifact's body.
func bodyOf(a *agent.Artifact) *agent.Artifact {
	body := &agent.Artifact{Code: a.Code, Rejections: a.Rejections, Displaced: a.Displaced, Examples: a.Examples,
		Verdicts: a.Verdicts,
		Failures: a.Failures, Drifts: a.Drifts, Manifest: a.Manifest,
		Generations: make([]*agent.Generation, len(a.Generations))}
	for i, g := range a.Generations {
		body.Generations[i] = &agent.Generation{ID: g.ID, Code: g.Code, Facts: g.Facts,
			ChangedAnswers: g.ChangedAnswers, SolverShape: g.SolverShape,
			Interface: g.Interface, Shapes: g.Shapes, Outlines: g.Outlines, Fixtures: g.Fixtures, Effects: g.Effects,
			MadeFor: g.MadeFor, Asked: g.Asked}
	}
	return body
}

// join assembles an artifact from its parts. It returns an error if they come from different changes.
func join(head, body *agent.Artifact) (*agent.Artifact, error) {
	a := *head
	a.Code, a.Rejections, a.Displaced, a.Examples, a.Verdicts, a.Failures, a.Drifts, a.Manifest = body.Code,
		body.Rejections, body.Displaced, body.Examples,
		body.Verdicts, body.Failures, body.Drifts, body.Manifest
	a.Generations = make([]*agent.Generation, len(head.Generations))
	for i, h := range head.Generations {
		if h == nil || i >= len(body.Generations) || body.Generations[i] == nil || body.Generations[i].ID != h.ID {
			return nil, fmt.Errorf("the parts of artifact %s are of different changes", head)
		}
		g, b := *h, body.Generations[i]
		g.Code, g.Facts, g.ChangedAnswers, g.SolverShape, g.Interface = b.Code, b.Facts, b.ChangedAnswers,
			b.SolverShape, b.Interface
		g.Shapes, g.Outlines, g.Fixtures, g.Effects, g.MadeFor, g.Asked = b.Shapes, b.Outlines, b.Fixtures, b.Effects,
			b.MadeFor, b.Asked
		a.Generations[i] = &g
	}
	return &a, nil
}

// decodeArtifact decodes an artifact from its parts.
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

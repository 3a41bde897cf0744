package api

import (
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

// artifactView is the artifact as stored, with some fields hidden: a nil *struct{} of the same JSON name shadows a
// field of agent.Artifact. Fixtures hold arguments and values of sessions, so only their number is shown.
type artifactView struct {
	*agent.Artifact
	Generations []generationView  `json:"history"`
	Displaced   *struct{}         `json:"displaced,omitempty"`  // kept for an undo only
	Examples    *struct{}         `json:"examples,omitempty"`   // have a path of their own
	Verdicts    *struct{}         `json:"verdicts,omitempty"`   // have a path of their own
	Failures    *struct{}         `json:"failures,omitempty"`   // hold samples of fetched data, for models only
	Rejections  []agent.Rejection `json:"rejections,omitempty"` // without hints
	Drifts      *struct{}         `json:"drifts,omitempty"`     // for proofs only
	Adoptions   *struct{}         `json:"adoptions,omitempty"`  // for replicas only
	Returned    *struct{}         `json:"returned,omitempty"`   // shown in the inbox

	LastFailureOwner *struct{} `json:"last_failure_owner,omitempty"` // for models only

	// when a model last confirmed that the current program serves the method's purpose; absent if never
	PurposeCheckedAt *time.Time `json:"purpose_checked_at,omitempty"`

	ShownTo string `json:"shown_to"`
	// the interface that a call without a contract gets; absent until a program has one
	Interface  *agent.Interface `json:"interface,omitempty"`
	Native     nativeView       `json:"native"` // of the current program
	Correction agent.Correction `json:"correction"`
	// a person called an answer of the current program wrong
	Doubted bool `json:"doubted,omitempty"`
	// "purpose" if a person changed the method's purpose after its current program was made
	Stale string `json:"stale,omitempty"`
	// number of active examples that the current program breaks, if it was made for a changed purpose and awaits
	// approval
	BreaksExamples int      `json:"breaks_examples,omitempty"`
	BrokenExamples []string `json:"broken_examples,omitempty"` // by the operation that this replies to
}

// generationView is a generation with some fields hidden, in the same way as in artifactView.
type generationView struct {
	*agent.Generation
	Fixtures     *struct{} `json:"fixtures,omitempty"` // hold values of sessions
	FixtureCount int       `json:"fixture_count"`
	NewHosts     []string  `json:"new_hosts,omitempty"` // hosts that its parent neither reaches nor names
	Answered     *struct{} `json:"answered,omitempty"`  // holds hashes of inputs
	Outlines     *struct{} `json:"outlines,omitempty"`  // for models only
	ShapesOwner  *struct{} `json:"shapes_owner,omitempty"`

	Asked     *struct{} `json:"asked,omitempty"`    // words of a caller
	MadeFor   *struct{} `json:"made_for,omitempty"` // the registered wording has a path of its own
	Confirmed *struct{} `json:"confirmed,omitempty"`
	Breaks    *struct{} `json:"breaks,omitempty"` // ids of examples: only those who see the calls may see them
	// number of active examples that the generation did not satisfy when it was made for a changed purpose
	BreaksExamples   int        `json:"breaks_examples,omitempty"`
	PurposeCheckedAt *time.Time `json:"purpose_checked_at,omitempty"`
}

// generationViews returns the views of all kept generations, newest first as in the artifact.
func generationViews(a *agent.Artifact) []generationView {
	views := make([]generationView, len(a.Generations))
	for i, g := range a.Generations {
		views[i] = generationView{Generation: g, FixtureCount: len(g.Fixtures), NewHosts: a.NewHosts(g),
			BreaksExamples: len(a.Breaks(g)), PurposeCheckedAt: checkedAt(g)}
	}
	return views
}

// checkedAt returns when a model last confirmed that the program serves the method's purpose; nil means never.
func checkedAt(g *agent.Generation) *time.Time {
	if g.MadeFor == nil {
		return nil
	}
	return g.MadeFor.Checked
}

func (s *server) sendArtifact(w *reply, r *http.Request, a *agent.Artifact) error {
	return s.sendOperated(w, r, a, nil)
}

// sendOperated sends the artifact, and the ids of the examples that a person's operation broke.
func (s *server) sendOperated(w *reply, r *http.Request, a *agent.Artifact, broken []string) error {
	view := artifactView{Artifact: a, Generations: generationViews(a),
		Correction: agent.Correction{State: agent.CorrectionNone}, BrokenExamples: broken,
		Rejections: rejections(a), Native: nativeOf(w.run.Compiling()), Doubted: a.Doubted(a.CurrentID),
		ShownTo: shownTo(a, w.run.ByPerson(r.Context(), a.Role))}
	view.Stale = w.run.Staleness(r.Context(), a.Role)(a)
	if g := a.Current(); g != nil {
		view.PurposeCheckedAt = checkedAt(g)
		if a.AwaitsExamples(g) {
			view.BreaksExamples = len(a.Breaks(g))
		}
	}
	if g := a.Neutral(); g != nil {
		view.Interface = g.Interface
	}
	if a.Correction != nil {
		view.Correction = *a.Correction
	}
	return s.sendRevision(w, http.StatusOK, a.Revision, view)
}

// A nativeView reports whether the daemon compiles the method's programs.
type nativeView struct {
	State string `json:"state"`         // native or off
	Why   string `json:"why,omitempty"` // the reason, if State is off
}

func nativeOf(c runtime.Compiling) nativeView {
	if c.Why != "" {
		return nativeView{State: "off", Why: c.Why}
	}
	return nativeView{State: "native"}
}

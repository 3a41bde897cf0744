package api

import (
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

// artifactView is an artifact as it is stored, except for the fixtures of its generations: they hold arguments and values
// of sessions, and only their number is returned.
type artifactView struct {
	*agent.Artifact
	Generations []generationView  `json:"history"`
	Displaced   *struct{}         `json:"displaced,omitempty"`  // hides what is kept for an undo only
	Examples    *struct{}         `json:"examples,omitempty"`   // they have a path of their own
	Verdicts    *struct{}         `json:"verdicts,omitempty"`   // so have they
	Failures    *struct{}         `json:"failures,omitempty"`   // samples of what was fetched are for models only
	Rejections  []agent.Rejection `json:"rejections,omitempty"` // without hints
	Drifts      *struct{}         `json:"drifts,omitempty"`     // for proofs only
	Adoptions   *struct{}         `json:"adoptions,omitempty"`  // for replicas only
	Returned    *struct{}         `json:"returned,omitempty"`   // the inbox shows it

	LastFailureOwner *struct{} `json:"last_failure_owner,omitempty"` // for models only

	// when a model last said that the current program does what the method is for
	PurposeCheckedAt *time.Time `json:"purpose_checked_at,omitempty"`

	ShownTo string `json:"shown_to"`
	// of what a call without a contract is given; absent until it is known
	Interface  *agent.Interface `json:"interface,omitempty"`
	Native     nativeView       `json:"native"` // of the current program
	Correction agent.Correction `json:"correction"`
	// a person called an answer of the current program wrong
	Doubted bool `json:"doubted,omitempty"`
	// purpose: a person has changed what the method is for since what answers was made
	Stale string `json:"stale,omitempty"`
	// how many active examples the current program breaks, which was written for a changed purpose and waits for a person
	BreaksExamples int      `json:"breaks_examples,omitempty"`
	BrokenExamples []string `json:"broken_examples,omitempty"` // by a person's operation
}

type generationView struct {
	*agent.Generation
	Fixtures     *struct{} `json:"fixtures,omitempty"` // hides the generation's own
	FixtureCount int       `json:"fixture_count"`
	NewHosts     []string  `json:"new_hosts,omitempty"` // that its parent neither reached nor names
	Answered     *struct{} `json:"answered,omitempty"`  // hides hashes of inputs
	Outlines     *struct{} `json:"outlines,omitempty"`  // and what is for models only
	ShapesOwner  *struct{} `json:"shapes_owner,omitempty"`

	Asked     *struct{} `json:"asked,omitempty"`    // the words of a caller
	MadeFor   *struct{} `json:"made_for,omitempty"` // what is registered has a path of its own
	Confirmed *struct{} `json:"confirmed,omitempty"`
	Breaks    *struct{} `json:"breaks,omitempty"` // their ids are for those who see the calls
	// how many active examples it does not hold, written for a purpose that was changed
	BreaksExamples   int        `json:"breaks_examples,omitempty"`
	PurposeCheckedAt *time.Time `json:"purpose_checked_at,omitempty"`
}

func generationViews(a *agent.Artifact) []generationView {
	views := make([]generationView, len(a.Generations))
	for i, g := range a.Generations {
		views[i] = generationView{Generation: g, FixtureCount: len(g.Fixtures), NewHosts: a.NewHosts(g),
			BreaksExamples: len(a.Breaks(g)), PurposeCheckedAt: checkedAt(g)}
	}
	return views
}

// checkedAt is when a model last said that the program does what its method is for; nil: it has not.
func checkedAt(g *agent.Generation) *time.Time {
	if g.MadeFor == nil {
		return nil
	}
	return g.MadeFor.Checked
}

func (s *server) sendArtifact(w *reply, r *http.Request, a *agent.Artifact) error {
	return s.sendOperated(w, r, a, nil)
}

// sendOperated sends the artifact after a person's operation, with the examples that the operation broke.
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

// A nativeView reports whether the method's programs are compiled.
type nativeView struct {
	State string `json:"state"`         // native, or off
	Why   string `json:"why,omitempty"` // of off
}

func nativeOf(c runtime.Compiling) nativeView {
	if c.Why != "" {
		return nativeView{State: "off", Why: c.Why}
	}
	return nativeView{State: "native"}
}

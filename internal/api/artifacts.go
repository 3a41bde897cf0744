package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// Artifacts are the operations on programs that the interface needs from a runtime.
type Artifacts interface {
	Artifact(ctx context.Context, role, method string) (*agent.Artifact, error)
	ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error)
	ArchiveArtifact(ctx context.Context, role, method, reason, actor string) error
	PutProgram(ctx context.Context, q operator.ProgramPut) (*agent.Artifact, error)
	Operate(ctx context.Context, role, method string, o operator.Operation) (*agent.Artifact, error)
	Compiling() env.Compiling
}

// artifactSummary is an artifact in a list, without code, generations and scorecard.
type artifactSummary struct {
	Role                string `json:"role"`
	MethodName          string `json:"method_name"`
	LifecycleState      string `json:"lifecycle_state"`
	CurrentGeneration   string `json:"current_generation"`
	CodeChecksum        string `json:"code_checksum"`
	ContractFingerprint string `json:"contract_fingerprint"`
	SuccessCount        int64  `json:"success_count"`
	FailureCount        int64  `json:"failure_count"`
	// errors that programs returned on purpose; they do not count as failures
	AuthoredErrorCount    int64       `json:"authored_error_count"`
	RecentFailureRate     float64     `json:"recent_failure_rate"`
	LastFailureClass      agent.Class `json:"last_failure_class"`
	RepairCountSinceRegen int         `json:"repair_count_since_regen"`
	Cacheable             bool        `json:"cacheable"`
	Quarantined           bool        `json:"quarantined"`
	Pinned                bool        `json:"pinned"`
	// "purpose" if a person changed the method's purpose after its current program was made, else ""
	Stale      string    `json:"stale,omitempty"`
	ShownTo    string    `json:"shown_to"` // "everyone" or "owner": see shownTo
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at"`
	Revision   int64     `json:"revision"`
}

// listArtifacts lists the artifacts of a role by method. It pages over the whole list, which the runtime returns.
func (s *server) listArtifacts(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	q := readQuery(r)
	limit, after := q.limit(), q.text("after")
	if err := q.err(); err != nil {
		return err
	}
	all, err := w.run.ListArtifacts(r.Context(), role)
	if err != nil {
		return noTool(err, role)
	}
	byPerson, stale := w.run.ByPerson(r.Context(), role), w.run.Staleness(r.Context(), role)
	summaries := make([]artifactSummary, 0, min(len(all), limit+1))
	for _, a := range all { // sorted by method
		// one more than limit: page needs it to detect a next page
		if a.MethodName > after && len(summaries) <= limit {
			summaries = append(summaries, artifactSummary{a.Role, a.MethodName, a.LifecycleState, a.CurrentID,
				a.CodeChecksum, a.ContractFingerprint,
				a.SuccessCount, a.FailureCount, a.AuthoredErrorCount, a.RecentFailureRate, a.LastFailureClass,
				a.RepairCountSinceRegen, a.Cacheable, a.Quarantined, a.Pinned,
				stale(a), shownTo(a, byPerson), a.CreatedAt, a.LastUsedAt, a.Revision})
		}
	}
	return s.send(w, http.StatusOK, page(summaries, limit, func(a artifactSummary) string { return a.MethodName }))
}

// shownTo returns whose agents see the method in lists of tools. The policy mcp.expose may restrict it further.
func shownTo(a *agent.Artifact, byPerson bool) string {
	if a.ShownToAll(byPerson) {
		return "everyone"
	}
	return "owner"
}

// target returns the role and the method from the path.
func target(r *http.Request) (role, method string, err error) {
	if role, err = nameParam(r, "role"); err != nil {
		return "", "", err
	}
	method, err = nameParam(r, "method")
	return role, method, err
}

// noArtifact turns store.ErrNotFound into the problem that the artifact does not exist. Other errors pass unchanged.
func noArtifact(err error, role, method string) error {
	return missing(err, "program of "+strconv.Quote(role)+" "+strconv.Quote(method))
}

// artifact returns the artifact that the path names, or a problem.
func (s *server) artifact(w *reply, r *http.Request) (*agent.Artifact, error) {
	role, method, err := target(r)
	if err != nil {
		return nil, err
	}
	a, err := w.run.Artifact(r.Context(), role, method)
	if err != nil {
		return nil, noArtifact(err, role, method)
	}
	if w.only() != "" {
		a = a.WithoutCalls()
	}
	return a, nil
}

func (s *server) getArtifact(w *reply, r *http.Request) error {
	a, err := s.artifact(w, r)
	if err != nil {
		return err
	}
	return s.sendArtifact(w, r, a)
}

// generationList is the reply of listGenerations: the kept programs of an artifact and the latest rejected ones.
type generationList struct {
	Data       []generationView  `json:"data"`
	Rejections []agent.Rejection `json:"rejections,omitempty"`
	NextCursor *string           `json:"next_cursor"` // always null: an artifact keeps few generations
}

// listGenerations lists the kept programs of an artifact, and the latest rejected ones.
func (s *server) listGenerations(w *reply, r *http.Request) error {
	a, err := s.artifact(w, r)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, generationList{generationViews(a), rejections(a), nil})
}

// putProgram stores a program written by a person. The reply lists the examples that it breaks.
func (s *server) putProgram(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r, 1)
	if err != nil {
		return err
	}
	var code, reason string
	var declared agent.Declaration
	given := false
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "code":
			given = !isNull(v)
			f.text("/code", v, &code)
		case "reason":
			f.short("/reason", v, &reason, maxReason)
		case "summary":
			declared.Summary = slices.Clone(v)
		case "parameters":
			declared.Parameters = slices.Clone(v)
		case "returns":
			declared.Returns = slices.Clone(v)
		default:
			f.unknown("", name, "code, reason, summary, parameters, returns")
		}
	})
	if err != nil {
		return err
	}
	if !given {
		return required("code", "send the Go source of the program")
	}
	revision, err = existing(revision, func() error {
		_, err := w.run.Artifact(r.Context(), role, method)
		return err
	}, "there is no program of "+strconv.Quote(role)+" "+strconv.Quote(method), "leave If-Match out to make it")
	if err != nil {
		return err
	}
	a, err := w.run.PutProgram(r.Context(), operator.ProgramPut{Role: role, Method: method, Source: code,
		Declaration: declared, Revision: revision, Reason: reason, Actor: w.owner})
	if err != nil {
		return preconditionOf(err, revision)
	}
	broken, err := w.run.BrokenExamples(r.Context(), role, method, w.owner)
	if err != nil {
		return err
	}
	return s.sendOperated(w, r, a, broken)
}

// deleteArtifact moves the artifact to the archive, from which it can be restored.
func (s *server) deleteArtifact(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r, 1)
	if err != nil {
		return err
	}
	err = unchanged(revision, func() (int64, error) {
		a, err := w.run.Artifact(r.Context(), role, method)
		if err != nil {
			return 0, err
		}
		return a.Revision, nil
	})
	if err != nil {
		return err
	}
	if err := w.run.ArchiveArtifact(r.Context(), role, method, reason, w.owner); err != nil {
		return noArtifact(err, role, method)
	}
	return s.noContent(w)
}

// operate returns the handler of one operator action, such as quarantine or rollback (seed 001's playbook).
func (s *server) operate(action string) handler {
	return func(w *reply, r *http.Request) error {
		role, method, err := target(r)
		if err != nil {
			return err
		}
		o := operator.Operation{Action: action, Actor: w.owner}
		err = s.decode(w, r, true, func(f *fields, name, v []byte) {
			switch string(name) {
			case "reason":
				f.short("/reason", v, &o.Reason, maxReason)
			case "reset_metrics":
				f.boolean("/reset_metrics", v, &o.ResetMetrics)
			case "generation":
				f.short("/generation", v, &o.Generation, 64)
			default:
				f.unknown("", name, "reason, reset_metrics, generation")
			}
		})
		if err != nil {
			return err
		}
		a, err := w.run.Operate(r.Context(), role, method, o)
		if err != nil {
			return noArtifact(err, role, method)
		}
		// only these two change which program answers, so only they can break examples
		if action != "rollback" && action != "approve" {
			return s.sendArtifact(w, r, a)
		}
		broken, err := w.run.BrokenExamples(r.Context(), role, method, w.owner)
		if err != nil {
			return err
		}
		return s.sendOperated(w, r, a, broken)
	}
}

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

func nativeOf(c env.Compiling) nativeView {
	if c.Why != "" {
		return nativeView{State: "off", Why: c.Why}
	}
	return nativeView{State: "native"}
}

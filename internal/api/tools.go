package api

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/api/strict"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/store"
)

const maxReason = 2000 // bytes of an operator's reason

func (s *server) listTools(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after := q.limit(), q.text("after")
	if err := q.err(); err != nil {
		return err
	}
	tools, err := s.run.ListTools(r.Context(), after, limit+1)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, page(tools, limit, func(t agent.Tool) string { return t.Role }))
}

func noTool(err error, role string) error { return missing(err, "tool "+strconv.Quote(role)) }

func (s *server) getTool(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	t, err := s.run.Tool(r.Context(), role)
	if err != nil {
		return noTool(err, role)
	}
	return s.sendRevision(w, http.StatusOK, t.Revision, t)
}

func (s *server) putTool(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	revision, err := wantedRevision(r)
	if err != nil {
		return err
	}
	var c agent.Contract
	var methods map[string]agent.Contract
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch {
		case string(name) == "methods":
			methods = f.methods(v)
		case !f.contractMember("", name, v, &c):
			f.unknown("", name, contractNames+", methods")
		}
	})
	if err != nil {
		return err
	}
	if revision == mustExist {
		switch _, err := s.run.Tool(r.Context(), role); {
		case errors.Is(err, store.ErrNotFound):
			return fault(codePrecondition, "there is no tool "+strconv.Quote(role), "leave If-Match out to register it")
		case err != nil:
			return err
		}
		revision = store.AnyRevision
	}
	t, created, err := s.run.PutTool(r.Context(), role, c, methods, revision, w.owner)
	if err != nil {
		return preconditionOf(err, revision)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", r.URL.EscapedPath())
	}
	return s.sendRevision(w, status, t.Revision, t)
}

// methods reads the contracts per method.
func (f *fields) methods(v []byte) map[string]agent.Contract {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		f.wrongKind("/methods", "an object of contracts", v)
		return nil
	}
	m := map[string]agent.Contract{}
	_ = strict.Members(v, func(name, value []byte) error { // cannot fail: the whole body has passed
		at := strict.Pointer("/methods", string(name))
		var bad *agent.NameError
		if errors.As(agent.CheckName("method", string(name)), &bad) {
			f.bad(at, bad.Reason, "names have 1 to 200 characters, no slashes, no control or invisible characters")
		}
		if c := f.contract(at, value); c != nil {
			m[string(name)] = *c
		}
		return nil
	})
	return m
}

// mustExist is the revision of If-Match with a star.
const mustExist = store.AnyRevision - 1

// wantedRevision reads If-Match and If-None-Match: 0 is "must be new", store.AnyRevision is "whatever it is".
func wantedRevision(r *http.Request) (int64, error) {
	for _, name := range []string{"If-Match", "If-None-Match"} {
		if len(r.Header[name]) > 1 {
			return 0, fault(codeParameter, name+" is there more than once", "").in("header:"+name, "must be there once")
		}
	}
	if none := r.Header.Get("If-None-Match"); none != "" {
		if none != "*" {
			return 0, fault(codeParameter, "If-None-Match takes only * here", "").in("header:If-None-Match", "must be *")
		}
		return 0, nil
	}
	match := r.Header.Get("If-Match")
	switch match {
	case "":
		return store.AnyRevision, nil
	case "*":
		return mustExist, nil
	}
	n, err := strconv.ParseInt(strings.Trim(match, `"`), 10, 64)
	if err != nil || n < 1 {
		return 0, fault(codeParameter, "If-Match is not an ETag of this daemon", `such as If-Match: "7"`).in("header:If-Match", "must be a quoted revision")
	}
	return n, nil
}

// preconditionOf tells a failed If-Match from a change that raced with the request.
func preconditionOf(err error, revision int64) error {
	if p := problemOf(err); revision != store.AnyRevision && (p.Code == codeConflict || p.Code == codeExists) {
		return fault(codePrecondition, "", "")
	}
	return err
}

func (s *server) deleteTool(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	if err := s.run.ArchiveTool(r.Context(), role, reason, w.owner); err != nil {
		return noTool(err, role)
	}
	return s.noContent(w)
}

func queryReason(r *http.Request) (string, error) {
	q := readQuery(r)
	reason := q.text("reason")
	if len(reason) > maxReason {
		q.bad("reason", "has more than "+strconv.Itoa(maxReason)+" bytes")
	}
	return reason, q.err()
}

// artifactSummary is an artifact in a list: without code, generations and scorecard.
type artifactSummary struct {
	Role                  string      `json:"role"`
	MethodName            string      `json:"method_name"`
	LifecycleState        string      `json:"lifecycle_state"`
	CurrentGeneration     string      `json:"current_generation"`
	CodeChecksum          string      `json:"code_checksum"`
	ContractFingerprint   string      `json:"contract_fingerprint"`
	SuccessCount          int64       `json:"success_count"`
	FailureCount          int64       `json:"failure_count"`
	RecentFailureRate     float64     `json:"recent_failure_rate"`
	LastFailureClass      agent.Class `json:"last_failure_class"`
	RepairCountSinceRegen int         `json:"repair_count_since_regen"`
	Cacheable             bool        `json:"cacheable"`
	Quarantined           bool        `json:"quarantined"`
	Pinned                bool        `json:"pinned"`
	CreatedAt             time.Time   `json:"created_at"`
	LastUsedAt            time.Time   `json:"last_used_at"`
	Revision              int64       `json:"revision"`
}

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
	all, err := s.run.ListArtifacts(r.Context(), role)
	if err != nil {
		return noTool(err, role)
	}
	summaries := make([]artifactSummary, 0, min(len(all), limit+1))
	for _, a := range all { // by method
		if a.MethodName > after && len(summaries) <= limit {
			summaries = append(summaries, artifactSummary{a.Role, a.MethodName, a.LifecycleState, a.CurrentID, a.CodeChecksum, a.ContractFingerprint,
				a.SuccessCount, a.FailureCount, a.RecentFailureRate, a.LastFailureClass, a.RepairCountSinceRegen, a.Cacheable, a.Quarantined, a.Pinned,
				a.CreatedAt, a.LastUsedAt, a.Revision})
		}
	}
	return s.send(w, http.StatusOK, page(summaries, limit, func(a artifactSummary) string { return a.MethodName }))
}

// artifactView is an artifact as it is stored, but for the fixtures of its generations: they hold arguments and values
// of sessions, and only their number is told.
type artifactView struct {
	*agent.Artifact
	Generations []generationView  `json:"history"`
	Displaced   *struct{}         `json:"displaced,omitempty"`  // hides what is kept for an undo only
	Examples    *struct{}         `json:"examples,omitempty"`   // they have a path of their own
	Verdicts    *struct{}         `json:"verdicts,omitempty"`   // so have they
	Failures    *struct{}         `json:"failures,omitempty"`   // samples of what was fetched are for models only
	Rejections  []agent.Rejection `json:"rejections,omitempty"` // without hints
	Drifts      *struct{}         `json:"drifts,omitempty"`     // for proofs only

	Correction     agent.Correction `json:"correction"`
	BrokenExamples []string         `json:"broken_examples,omitempty"` // by a person's operation
}

type generationView struct {
	*agent.Generation
	Fixtures     *struct{} `json:"fixtures,omitempty"` // hides the generation's own
	FixtureCount int       `json:"fixture_count"`
	Answered     *struct{} `json:"answered,omitempty"` // hides hashes of inputs
	Outlines     *struct{} `json:"outlines,omitempty"` // and what is for models only
}

func generationViews(a *agent.Artifact) []generationView {
	views := make([]generationView, len(a.Generations))
	for i, g := range a.Generations {
		views[i] = generationView{Generation: g, FixtureCount: len(g.Fixtures)}
	}
	return views
}

// rejections leaves out what only models see.
func rejections(a *agent.Artifact) []agent.Rejection {
	out := slices.Clone(a.Rejections)
	for i := range out {
		out[i].Hint = ""
	}
	return out
}

func (s *server) sendArtifact(w *reply, status int, a *agent.Artifact) error {
	return s.sendOperated(w, status, a, nil)
}

// sendOperated sends the artifact after a person's operation, with the examples that the operation broke.
func (s *server) sendOperated(w *reply, status int, a *agent.Artifact, broken []string) error {
	view := artifactView{Artifact: a, Generations: generationViews(a), Correction: agent.Correction{State: agent.CorrectionNone}, BrokenExamples: broken, Rejections: rejections(a)}
	if a.Correction != nil {
		view.Correction = *a.Correction
	}
	return s.sendRevision(w, status, a.Revision, view)
}

// target returns the role and the method of the path.
func target(r *http.Request) (role, method string, err error) {
	if role, err = nameParam(r, "role"); err != nil {
		return "", "", err
	}
	method, err = nameParam(r, "method")
	return role, method, err
}

func noArtifact(err error, role, method string) error {
	return missing(err, "artifact of "+strconv.Quote(role)+" "+strconv.Quote(method))
}

func (s *server) getArtifact(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	a, err := s.run.Artifact(r.Context(), role, method)
	if err != nil {
		return noArtifact(err, role, method)
	}
	return s.sendArtifact(w, http.StatusOK, a)
}

// generationList is all that is kept of an artifact's programs, and what was not let in.
type generationList struct {
	Data       []generationView  `json:"data"`
	Rejections []agent.Rejection `json:"rejections,omitempty"`
	NextCursor *string           `json:"next_cursor"` // always null: an artifact keeps few
}

func (s *server) listGenerations(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	a, err := s.run.Artifact(r.Context(), role, method)
	if err != nil {
		return noArtifact(err, role, method)
	}
	return s.send(w, http.StatusOK, generationList{generationViews(a), rejections(a), nil})
}

func (s *server) putProgram(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	var code, reason string
	given := false
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "code":
			given = !isNull(v)
			f.text("/code", v, &code)
		case "reason":
			f.short("/reason", v, &reason, maxReason)
		default:
			f.unknown("", name, "code, reason")
		}
	})
	if err != nil {
		return err
	}
	if !given {
		return required("code", "send the Go source of the program")
	}
	a, err := s.run.PutProgram(r.Context(), role, method, code, reason, w.owner)
	if err != nil {
		return err
	}
	broken, err := s.run.BrokenExamples(r.Context(), role, method, w.owner)
	if err != nil {
		return err
	}
	return s.sendOperated(w, http.StatusOK, a, broken)
}

func (s *server) deleteArtifact(w *reply, r *http.Request) error {
	role, method, err := target(r)
	if err != nil {
		return err
	}
	reason, err := queryReason(r)
	if err != nil {
		return err
	}
	if err := s.run.ArchiveArtifact(r.Context(), role, method, reason, w.owner); err != nil {
		return noArtifact(err, role, method)
	}
	return s.noContent(w)
}

// operate makes the handler of one operator's act (seed 001's playbook).
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
		a, err := s.run.Operate(r.Context(), role, method, o)
		if err != nil {
			return noArtifact(err, role, method)
		}
		if action != "rollback" && action != "approve" {
			return s.sendArtifact(w, http.StatusOK, a)
		}
		broken, err := s.run.BrokenExamples(r.Context(), role, method, w.owner)
		if err != nil {
			return err
		}
		return s.sendOperated(w, http.StatusOK, a, broken)
	}
}

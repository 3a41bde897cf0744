package evolve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Kinds of recommendations.
const (
	StrengthenContract = "strengthen_contract"
	Reforge            = "reforge"
	SplitBoundary      = "split_boundary"
)

// Bounds of what a recommendation looks at and cites.
const (
	MaxCalls    = 200 // the newest calls of a method
	maxEvidence = 20
)

// Call is one finished call as evidence.
type Call struct {
	CallID      string
	Status      string
	ErrorType   string
	Authored    bool
	Class       agent.Class // of a failed attempt, repaired or not
	Weak        []string    // reasons
	Passed      bool        // a nested call of this one was weak, or authored the error, and is the cause
	CorrectedBy string      // the call that asked again, "verdict" where a person called the answer wrong, or ""
	Wrong       bool        // a person called the answer wrong, and no program was written for it yet
}

// Method is the evidence on one role's method: its newest calls. Calls are oldest first.
type Method struct {
	Role        string
	Method      string
	Deliverable json.RawMessage // of the registered contract, or nil
	Calls       []Call          // the remarkable ones: weak, failed, repaired, corrected
	Plain       int             // number of plain calls between them
	PlainIDs    []string        // ids of the newest plain calls

	// Value returns the value of an ok call while it is kept, else nil. It is asked only where there is something to
	// simulate. It may be nil.
	Value func(callID string) json.RawMessage
}

// Recommendation is advice to a person. Nothing is applied automatically.
type Recommendation struct {
	ID         string      `json:"id"` // the same for the same advice
	Role       string      `json:"role"`
	Method     string      `json:"method"`
	Kind       string      `json:"kind"`
	Score      float64     `json:"score"` // 0 to 1
	Reason     string      `json:"reason"`
	Evidence   []string    `json:"evidence"` // call ids, newest first, at most 20
	Proposal   Proposal    `json:"proposal"`
	Simulation *Simulation `json:"simulation"` // null where there is nothing to simulate
}

// Shared returns the recommendation for readers who may see none of its calls: without names of members that are not declared, which may be
// data, and without a deliverable, which may be a caller's.
func (r Recommendation) Shared(declared func(name string) bool) Recommendation {
	r.Proposal.Deliverable = nil
	key, named := strings.CutPrefix(r.Proposal.Constraint, constraintOf)
	if key = strings.TrimSuffix(key, demandsOne); named && !declared(key) {
		r.Proposal.Constraint = constraintOf + "*" + demandsOne
		r.Reason = strings.Replace(r.Reason, strconv.Quote(key), "a member", 1)
	}
	return r
}

// Proposal is what applying the recommendation would do.
type Proposal struct {
	Constraint  string          `json:"constraint,omitempty"`  // path of the new constraint
	Value       any             `json:"value,omitempty"`       // of the new constraint
	Deliverable json.RawMessage `json:"deliverable,omitempty"` // the whole new deliverable
	Action      string          `json:"action"`                // put_contract, regenerate, or review
}

// Simulation says what the new deliverable would have done to the recorded calls.
type Simulation struct {
	Calls int `json:"calls"` // recorded ok calls looked at
	// of these, by their value; the others, whose value is kept no more, by what was noted of it
	Checked           int `json:"checked"`
	WouldFail         int `json:"would_fail"`          // of these
	WouldFailReasked  int `json:"would_fail_reasked"`  // of these, the user asked again
	WouldFailAccepted int `json:"would_fail_accepted"` // and these the user took
}

// Recommend turns evidence into advice: best first, and the same bytes for the same evidence. It is never nil.
func Recommend(methods []Method, p agent.RecommendPolicy) []Recommendation {
	out := []Recommendation{}
	for _, m := range methods {
		out = append(out, strengthen(m, p)...)
		out = append(out, reforge(m, p)...)
		out = append(out, split(m, p)...)
	}
	for i := range out {
		out[i].ID = identify(out[i])
	}
	slices.SortFunc(out, func(a, b Recommendation) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Method, b.Method),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func identify(r Recommendation) string {
	proposal, err := json.Marshal(r.Proposal)
	if err != nil {
		proposal = []byte(r.Proposal.Constraint)
	}
	h := sha256.New()
	for _, part := range []string{r.Role, r.Method, r.Kind, string(proposal)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "rec_" + hex.EncodeToString(h.Sum(nil))[:20]
}

// tally is what some of a method's calls have in common.
type tally struct {
	ids       []string // oldest first
	corrected int
}

func (t *tally) add(c Call) {
	t.ids = append(t.ids, c.CallID)
	if c.CorrectedBy != "" {
		t.corrected++
	}
}

func (t tally) evidence() []string {
	out := slices.Clone(t.ids[max(0, len(t.ids)-maxEvidence):])
	slices.Reverse(out)
	return out
}

func (t tally) share(of int) float64 { return float64(len(t.ids)) / float64(max(of, 1)) }

// enough says whether the tally is worth a person's time: often in number and share, or corrected by users.
func (t tally) enough(of int, p agent.RecommendPolicy) bool {
	return len(t.ids) >= p.MinEvidence && t.share(of) >= p.WeakRate || t.corrected >= p.Corrections
}

// score weighs how large the share is, how often users asked again, and how much evidence there is.
func (t tally) score(of int) float64 {
	corrected := float64(t.corrected) / float64(max(len(t.ids), 1))
	s := 0.4*min(1, t.share(of)) + 0.4*corrected + 0.2*min(1, float64(len(t.ids))/10)
	return math.Round(s*1000) / 1000
}

// reforge recommends a new program where the present one keeps failing by its own fault, or keeps saying itself that it
// achieved little, in ways that no constraint can catch.
func reforge(m Method, p agent.RecommendPolicy) []Recommendation {
	var failed, little, wrong tally
	for _, c := range m.Calls {
		switch {
		case c.Wrong:
			wrong.add(c)
		case c.Class == agent.ClassIntrinsic || c.Class == agent.ClassAdaptive:
			failed.add(c)
		case c.Passed: // the cause lies below
		// an outage is nobody's evidence
		case c.Status == agent.StatusOK && uncatchable(c.Weak), c.Status == agent.StatusError && c.Authored &&
			c.Class != agent.ClassExtrinsic && notItsCallersFault(c.ErrorType):
			little.add(c)
		}
	}
	n := m.size()
	var reasons []string
	all := tally{}
	if len(failed.ids) >= p.IntrinsicFailures {
		reasons = append(reasons, fmt.Sprintf("%d of %d calls failed by the program's fault or on a changed outside",
			len(failed.ids), n))
		all.corrected += failed.corrected
		all.ids = append(all.ids, failed.ids...)
	}
	if little.enough(n, p) {
		reasons = append(reasons,
			fmt.Sprintf("%d of %d calls achieved little by the program's own word, and %d of them were asked again",
				len(little.ids), n, little.corrected))
		all.corrected += little.corrected
		all.ids = append(all.ids, little.ids...)
	}
	if len(wrong.ids) >= p.Corrections {
		reasons = append(reasons, fmt.Sprintf("people called the answers of %d of %d calls wrong", len(wrong.ids), n))
		all.corrected += wrong.corrected
		all.ids = append(all.ids, wrong.ids...)
	}
	if len(reasons) == 0 {
		return nil
	}
	all.ids = inOrder(m.Calls, all.ids)
	return []Recommendation{{Role: m.Role, Method: m.Method, Kind: Reforge, Score: all.score(n),
		Evidence: all.evidence(),
		Reason:   strings.Join(reasons, "; ") + ": have it forged anew", Proposal: Proposal{Action: "regenerate"}}}
}

// uncatchable reports whether no contract constraint can catch any of the reasons, because constraints check only the top level.
// size is how many calls are looked at.
func (m *Method) size() int { return len(m.Calls) + m.Plain }

func uncatchable(reasons []string) bool {
	return len(reasons) > 0 && !slices.ContainsFunc(reasons, func(r string) bool {
		_, _, top := emptyField(r)
		return top || weakKind(r) == "other"
	})
}

func notItsCallersFault(errorType string) bool {
	return errorType != agent.ErrInvalidInput && errorType != agent.ErrWrongToolBoundary
}

func inOrder(calls []Call, ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, c := range calls {
		if slices.Contains(ids, c.CallID) {
			out = append(out, c.CallID)
		}
	}
	return out
}

// split recommends to look at a role's boundary when its programs keep saying that the task is not theirs.
func split(m Method, p agent.RecommendPolicy) []Recommendation {
	var referred tally
	for _, c := range m.Calls {
		if c.ErrorType == agent.ErrWrongToolBoundary && !c.Passed {
			referred.add(c)
		}
	}
	if len(referred.ids) < p.BoundaryReferrals {
		return nil
	}
	return []Recommendation{{Role: m.Role, Method: m.Method, Kind: SplitBoundary, Score: referred.score(m.size()),
		Evidence: referred.evidence(),
		Reason:   fmt.Sprintf("%d of %d calls ended in wrong_tool_boundary: give the task to a role of its own, or widen this one's purpose", len(referred.ids), m.size()),
		Proposal: Proposal{Action: "review"}}}
}

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

// Bounds of the calls that a recommendation examines and cites.
const (
	maxCalls    = 200 // newest calls of a method
	maxEvidence = 20
)

// Call is a finished call as evidence.
type Call struct {
	CallID      string
	Status      string
	ErrorType   string
	Authored    bool
	Class       agent.Class // of a failed attempt, whether repaired or not
	Weak        []string    // reasons of a weak success
	Passed      bool        // the cause is a nested call, which was weak or authored the error
	CorrectedBy string      // ID of the call that asked again, "verdict" if a person judged the answer wrong, or ""
	Wrong       bool        // a person judged the answer wrong, and no corrected program exists yet
}

// Method is the evidence on a method of a role: its newest calls. Calls are oldest first.
type Method struct {
	Role        string
	Method      string
	Deliverable json.RawMessage // from the registered contract; nil if there is none
	Calls       []Call          // remarkable calls: weak, failed, repaired or corrected
	Plain       int             // number of plain calls between them
	PlainIDs    []string        // IDs of the newest plain calls

	// Value returns the value of an ok call, or nil if it is not kept any more. It is called only for simulations. It
	// may be nil.
	Value func(callID string) json.RawMessage
}

// Recommendation is advice for a person. Nothing is applied automatically.
type Recommendation struct {
	ID         string      `json:"id"` // equal for equal advice
	Role       string      `json:"role"`
	Method     string      `json:"method"`
	Kind       string      `json:"kind"`
	Score      float64     `json:"score"` // 0 to 1
	Reason     string      `json:"reason"`
	Evidence   []string    `json:"evidence"` // call IDs, newest first, at most 20
	Proposal   Proposal    `json:"proposal"`
	Simulation *Simulation `json:"simulation"` // null if there is nothing to simulate
}

// Shared returns the recommendation for readers who may not see any of its calls. It replaces undeclared member names,
// which may be data, and drops the deliverable, which may be a caller's.
func (r Recommendation) Shared(declared func(name string) bool) Recommendation {
	r.Proposal.Deliverable = nil
	key, named := strings.CutPrefix(r.Proposal.Constraint, constraintOf)
	if key = strings.TrimSuffix(key, demandsOne); named && !declared(key) {
		r.Proposal.Constraint = constraintOf + "*" + demandsOne
		r.Reason = strings.Replace(r.Reason, strconv.Quote(key), "a member", 1)
	}
	return r
}

// Proposal describes the effect of applying the recommendation.
type Proposal struct {
	Constraint  string          `json:"constraint,omitempty"`  // path of the new constraint
	Value       any             `json:"value,omitempty"`       // value of the new constraint
	Deliverable json.RawMessage `json:"deliverable,omitempty"` // the whole new deliverable
	Action      string          `json:"action"`                // put_contract, regenerate or review
}

// Simulation is the effect that the new deliverable would have had on the recorded calls.
type Simulation struct {
	Calls int `json:"calls"` // recorded ok calls examined
	// calls checked by their values; the others, whose values are not kept any more, are judged by the noted reasons
	Checked           int `json:"checked"`
	WouldFail         int `json:"would_fail"`          // calls that the new deliverable would reject
	WouldFailReasked  int `json:"would_fail_reasked"`  // rejected calls after which the user asked again
	WouldFailAccepted int `json:"would_fail_accepted"` // rejected calls whose answers the user accepted
}

// Recommend turns evidence into advice, best first. The same evidence gives the same bytes. The result is never nil.
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

// identify derives a recommendation's ID from the advice alone.
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

// tally collects calls of a method that share a property.
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

// evidence returns the newest calls' IDs, newest first, at most maxEvidence.
func (t tally) evidence() []string {
	out := slices.Clone(t.ids[max(0, len(t.ids)-maxEvidence):])
	slices.Reverse(out)
	return out
}

func (t tally) share(of int) float64 { return float64(len(t.ids)) / float64(max(of, 1)) }

// enough reports whether the tally is worth a person's time: the calls are numerous and frequent enough, or users
// corrected enough of them.
func (t tally) enough(of int, p agent.RecommendPolicy) bool {
	return len(t.ids) >= p.MinEvidence && t.share(of) >= p.WeakRate || t.corrected >= p.Corrections
}

// score combines the share of the calls, how often users asked again, and the amount of evidence, to a number from 0 to
// 1.
func (t tally) score(of int) float64 {
	corrected := float64(t.corrected) / float64(max(len(t.ids), 1))
	s := 0.4*min(1, t.share(of)) + 0.4*corrected + 0.2*min(1, float64(len(t.ids))/10)
	return math.Round(s*1000) / 1000
}

// reforge recommends a new program if the current one keeps failing by its own fault, keeps reporting poor results in
// ways that no constraint can catch, or gave answers that people judged wrong.
func reforge(m Method, p agent.RecommendPolicy) []Recommendation {
	var failed, little, wrong tally
	for _, c := range m.Calls {
		switch {
		case c.Wrong:
			wrong.add(c)
		case c.Class == agent.ClassIntrinsic || c.Class == agent.ClassAdaptive:
			failed.add(c)
		case c.Passed: // the cause is a nested call
		// outages are not evidence
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

// size returns how many calls are examined.
func (m *Method) size() int { return len(m.Calls) + m.Plain }

// uncatchable reports whether no contract constraint can catch any of the reasons. Constraints check only the top
// level.
func uncatchable(reasons []string) bool {
	return len(reasons) > 0 && !slices.ContainsFunc(reasons, func(r string) bool {
		_, _, top := emptyField(r)
		return top || weakKind(r) == "other"
	})
}

// notItsCallersFault reports whether an authored error of that type is evidence about the program: a rejected input and
// a referral to another tool are not.
func notItsCallersFault(errorType string) bool {
	return errorType != agent.ErrInvalidInput && errorType != agent.ErrWrongToolBoundary
}

// inOrder returns the IDs in the order of the calls, without duplicates.
func inOrder(calls []Call, ids []string) []string {
	out := make([]string, 0, len(ids))
	for _, c := range calls {
		if slices.Contains(ids, c.CallID) {
			out = append(out, c.CallID)
		}
	}
	return out
}

// split recommends reviewing a role's boundary if its programs keep answering that the task belongs to another tool.
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

package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// Bounds of a policy simulation, in calls.
const (
	defaultSimulated = 500
	maxSimulated     = 1000
)

// listInbox lists what awaits a person's decision.
func (s *server) listInbox(w *reply, r *http.Request) error {
	q := readQuery(r)
	i := operator.InboxQuery{Limit: q.limit(), After: q.text("after"), Kind: q.oneOf("kind", operator.InboxKinds()...),
		Role: q.name("role"), Method: q.name("method"), Owner: w.only(), Sees: w.sees()}
	if err := q.err(); err != nil {
		return err
	}
	waiting, next, err := w.run.Inbox(r.Context(), i)
	if err != nil {
		return noPlace(q, err)
	}
	return s.send(w, http.StatusOK, list[operator.Waiting]{Data: waiting}.goesOn(next))
}

// inboxEvents streams the number of inbox entries, at once and whenever it changes.
func (s *server) inboxEvents(w *reply, r *http.Request) error {
	if err := readQuery(r).err(); err != nil {
		return err
	}
	out := newStream(w)
	if r.Method == http.MethodHead {
		out.begin()
		return nil
	}
	return follow(r.Context(), out, w.run.InboxCounts)
}

// simulatePolicy reports the effect of a policy patch on recent calls. It changes nothing.
func (s *server) simulatePolicy(w *reply, r *http.Request) error {
	q := operator.SimulationQuery{Calls: defaultSimulated, Owner: w.only()}
	if q.Owner != "" {
		q.Scan = w.scan()
	}
	err := s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "patch":
			f.object("/patch", v, &q.Patch)
		case "calls":
			f.integer("/calls", v, &q.Calls, 1, maxSimulated)
		default:
			f.unknown("", name, "patch, calls")
		}
	})
	if err != nil {
		return err
	}
	if q.Patch == nil {
		return required("patch", `such as {"patch": {"approval_required": true}, "calls": `+
			strconv.Itoa(defaultSimulated)+`}`)
	}
	report, err := w.run.SimulatePolicy(r.Context(), q)
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, report)
}

// principal is the sender of the request and its rights.
type principal struct {
	Name        string   `json:"name"`
	Issuer      string   `json:"issuer,omitempty"`
	Owner       string   `json:"owner"`     // of its sessions, files and audit entries
	Namespace   string   `json:"namespace"` // that the request acts in
	Home        string   `json:"home"`      // the token's own namespace
	Scopes      []string `json:"scopes"`
	Tokens      bool     `json:"tokens"`      // whether the daemon requires tokens
	Rate        float64  `json:"rate"`        // requests per second; 0: no limit
	Concurrency int      `json:"concurrency"` // calls at once; 0: no limit
}

// getMe returns the principal of the request.
func (s *server) getMe(w *reply, r *http.Request) error {
	if err := readQuery(r).err(); err != nil {
		return err
	}
	return s.sendNow(w, http.StatusOK, principal{Name: w.who.Name, Issuer: w.who.Issuer, Owner: w.owner,
		Namespace: string(w.in), Home: string(w.who.Namespace),
		Scopes: w.who.Scopes.Names(), Tokens: s.o.Auth != nil, Rate: w.who.Rate, Concurrency: w.who.Concurrency})
}

// Advice are the recommendations and their evidence that the interface needs from a runtime.
type Advice interface {
	Inbox(ctx context.Context, q operator.InboxQuery) (page []operator.Waiting, next string, err error)
	// Recommendations lists only the calls in the evidence that sees allows; nil allows all.
	Recommendations(ctx context.Context, status string, sees func(ctx context.Context,
		callID string) bool) ([]operator.Advice, error)
	ApplyRecommendation(ctx context.Context, d operator.AdviceDecision) (operator.Advice, error)
	DismissRecommendation(ctx context.Context, d operator.AdviceDecision) (operator.Advice, error)
	PatternReport(ctx context.Context, role string) (operator.PatternReport, error)
}

// listRecommendations lists recommendations, best first. It evaluates the stored evidence each time.
func (s *server) listRecommendations(w *reply, r *http.Request) error {
	q := readQuery(r)
	limit, after := q.limit(), q.text("after")
	status := q.oneOf("status", operator.AdviceOpen, operator.AdviceApplied, operator.AdviceDismissed)
	if err := q.err(); err != nil {
		return err
	}
	all, err := w.run.Recommendations(r.Context(), status, w.sees())
	if err != nil {
		return err
	}
	return s.send(w, http.StatusOK, page(behind(all, after), limit, func(a operator.Advice) string { return a.ID }))
}

// behind returns the entries after the one with that id. If there is none, it returns the whole list, since the entry
// may have been deleted.
func behind(all []operator.Advice, id string) []operator.Advice {
	for i, a := range all {
		if a.ID == id {
			return all[i+1:]
		}
	}
	return all
}

// decide returns the handler that applies or dismisses a recommendation.
func (s *server) decide(apply func(Advice, context.Context, operator.AdviceDecision) (operator.Advice,
	error)) handler {
	return func(w *reply, r *http.Request) error {
		id, ok := idParam(r, "id")
		d := operator.AdviceDecision{ID: id, Actor: w.owner}
		err := s.decode(w, r, true, func(f *fields, name, v []byte) {
			switch string(name) {
			case "reason":
				f.short("/reason", v, &d.Reason, maxReason)
			case "undo":
				f.boolean("/undo", v, &d.Undo)
			default:
				f.unknown("", name, "reason, undo")
			}
		})
		if err != nil {
			return err
		}
		if !ok {
			return fault(codeNotFound, "there is no recommendation of that id", "")
		}
		a, err := apply(w.run, r.Context(), d)
		if err != nil {
			return missing(err, "recommendation "+strconv.Quote(id)+" to decide about")
		}
		return s.send(w, http.StatusOK, a)
	}
}

// getPatterns returns the pattern memory of a role, which prompts contain.
func (s *server) getPatterns(w *reply, r *http.Request) error {
	role, err := nameParam(r, "role")
	if err != nil {
		return err
	}
	report, err := w.run.PatternReport(r.Context(), role)
	if err != nil {
		return err
	}
	// the patterns still count the events of everybody
	if sees := w.sees(); sees != nil {
		report.Events = slices.DeleteFunc(slices.Clone(report.Events),
			func(e agent.PatternEvent) bool { return !sees(r.Context(), e.CallID) })
	}
	return s.send(w, http.StatusOK, report)
}

package api

import (
	"net/http"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// Bounds of a simulation.
const (
	defaultSimulated = 500
	maxSimulated     = 1000
)

// listInbox lists what waits for a person's decision.
func (s *server) listInbox(w *reply, r *http.Request) error {
	q := readQuery(r)
	i := operator.InboxQuery{Limit: q.limit(), After: q.text("after"), Kind: q.oneOf("kind", operator.InboxKinds()...),
		Role: q.name("role"), Method: q.name("method")}
	if err := q.err(); err != nil {
		return err
	}
	waiting, next, err := w.run.Inbox(r.Context(), i)
	if err != nil {
		return noPlace(q, err)
	}
	return s.send(w, http.StatusOK, list[operator.Waiting]{Data: waiting}.goesOn(next))
}

// inboxEvents streams how much waits, at once and whenever that changes.
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

// simulatePolicy reports the effect that a change of the policy would have. It changes nothing.
func (s *server) simulatePolicy(w *reply, r *http.Request) error {
	q := operator.SimulationQuery{Calls: defaultSimulated}
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

// principal is who asks, and what they may do.
type principal struct {
	Name        string   `json:"name"`
	Issuer      string   `json:"issuer,omitempty"`
	Owner       string   `json:"owner"`     // under which sessions, files and audit entries are stored
	Namespace   string   `json:"namespace"` // in which the request acts
	Home        string   `json:"home"`      // the token's own
	Scopes      []string `json:"scopes"`
	Tokens      bool     `json:"tokens"`      // the daemon asks for tokens
	Rate        float64  `json:"rate"`        // requests per second; 0: no limit
	Concurrency int      `json:"concurrency"` // calls at once; 0: no limit
}

// getMe says who asks.
func (s *server) getMe(w *reply, r *http.Request) error {
	if err := readQuery(r).err(); err != nil {
		return err
	}
	return s.sendNow(w, http.StatusOK, principal{Name: w.who.Name, Issuer: w.who.Issuer, Owner: w.owner,
		Namespace: string(w.in), Home: string(w.who.Namespace),
		Scopes: w.who.Scopes.Names(), Tokens: s.o.Auth != nil, Rate: w.who.Rate, Concurrency: w.who.Concurrency})
}

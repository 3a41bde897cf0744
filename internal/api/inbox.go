package api

import (
	"net/http"
	"strconv"

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

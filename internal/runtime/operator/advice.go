package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
)

// Statuses of a recommendation.
const (
	AdviceOpen      = "open"
	AdviceApplied   = "applied"
	AdviceDismissed = "dismissed"
)

// Advice is a recommendation and what a person decided about it.
type Advice struct {
	evolve.Recommendation
	Status string `json:"status"` // open, applied, dismissed
	// CallerContracts counts the calls of the evidence whose call or session brought its own deliverable. Applying changes only
	// the registry's, over which such a deliverable wins, so these clients have to change theirs too.
	CallerContracts int `json:"caller_contracts"`
}

// Recommendations evaluates the stored evidence, and changes nothing. The same evidence gives the same advice, best first. The
// cost does not grow with the log. Applied and dismissed recommendations are listed only under that status. For who sees only some calls, which sees says,
// the evidence names these, and nothing shows what the others' values have; nil sees all.
func (o *Operator) Recommendations(ctx context.Context, status string,
	sees func(ctx context.Context, callID string) bool) (all []Advice, err error) {
	if status == AdviceApplied || status == AdviceDismissed {
		all, err = o.decidedAdvice(ctx, status)
	} else {
		all, err = o.openAdvice(ctx, true)
	}
	if sees == nil {
		return all, err
	}
	all = slices.Clone(all)
	for i := range all {
		all[i] = o.shared(ctx, all[i], sees)
	}
	return all, err
}

func (o *Operator) decidedAdvice(ctx context.Context, status string) ([]Advice, error) {
	if err := o.ledger.Open(ctx); err != nil {
		return nil, err
	}
	defer o.ledger.Close()
	return o.advices(status), nil
}

// shared returns the advice for a reader who sees only some calls.
func (o *Operator) shared(ctx context.Context, a Advice, sees func(ctx context.Context, callID string) bool) Advice {
	of, err := o.store.Artifact(ctx, a.Role, a.Method)
	if err != nil {
		of = nil // nothing is declared
	}
	a.Recommendation = a.Shared(of.Declares)
	a.Evidence = slices.DeleteFunc(slices.Clone(a.Evidence), func(id string) bool { return !sees(ctx, id) })
	return a
}

// adviceCount is what OpenRecommendations found last, and what that cost. The zero value is ready.
type adviceCount struct {
	mu      sync.Mutex // held while it is counted; a ledger is opened under it, never the other way around
	done    bool
	open    int
	commits int64 // of the store, when it was counted
	at      time.Time
	took    time.Duration
}

// OpenRecommendations is how many recommendations are open, for a gauge: it is asked at every scrape. It evaluates
// again only when something was committed since, which of replicas only the database knows, and spends no more than a twentieth of the time on it.
func (o *Operator) OpenRecommendations(ctx context.Context) (int, error) {
	k := &o.counted
	k.mu.Lock()
	defer k.mu.Unlock()
	began, commits := o.o.Now(), o.o.Store.Stats().Commits
	if k.done && (k.commits == commits && !o.o.Shared || began.Sub(k.at) < 20*k.took) {
		return k.open, nil
	}
	open, err := o.openAdvice(ctx, false)
	if err != nil {
		return 0, err
	}
	k.done, k.open, k.commits, k.at, k.took = true, len(open), commits, began, o.o.Now().Sub(began)
	return k.open, nil
}

// openAdvice is what nobody decided about. Operations need not wait for it: an evaluation takes a while.
func (o *Operator) openAdvice(ctx context.Context, exact bool) ([]Advice, error) {
	verdicts, err := o.decided(ctx)
	if err != nil {
		return nil, err
	}
	return o.evaluate(ctx, verdicts, exact)
}

// evaluate returns the recommendations without a decision. exact says whether simulations read stored values. An applied
// recommendation is open again, with all of its evidence, once the calls since then are sufficient evidence by themselves.
func (o *Operator) evaluate(ctx context.Context, decided map[string]verdict, exact bool) ([]Advice, error) {
	evidence, err := o.store.AllEvidence(ctx)
	if err != nil {
		return nil, err
	}
	sources := o.sources(ctx, exact)
	back := o.comeBack(evidence, decided, sources)
	own := ownContracts(evidence)
	out := []Advice{}
	for _, rec := range evolve.Recommend(evolve.Collect(evidence, sources), o.calls.Policy().Recommendations) {
		if v, known := decided[rec.ID]; known && (v.advice.Status != AdviceApplied || !back[rec.ID]) {
			continue
		}
		a := Advice{Recommendation: rec, Status: AdviceOpen}
		for _, id := range rec.Evidence {
			if own[id] {
				a.CallerContracts++
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// comeBack returns the ids of the applied recommendations for which the calls since then are sufficient evidence.
func (o *Operator) comeBack(evidence []agent.MethodEvidence, decided map[string]verdict,
	sources evolve.Sources) map[string]bool {
	back := map[string]bool{}
	sources.Value = nil
	for id, v := range decided {
		if v.advice.Status != AdviceApplied {
			continue
		}
		i := slices.IndexFunc(evidence, func(m agent.MethodEvidence) bool {
			return m.Role == v.advice.Role &&
				m.Method == v.advice.Method
		})
		if i < 0 {
			continue
		}
		newer := evidence[i]
		newer.Notes = slices.DeleteFunc(slices.Clone(newer.Notes), func(n agent.CallNote) bool { return n.At <= v.at })
		since := sources
		since.Wrong = func(m *agent.MethodEvidence) []string {
			return slices.DeleteFunc(sources.Wrong(m), func(id string) bool {
				return !slices.ContainsFunc(newer.Notes, func(n agent.CallNote) bool { return n.CallID == id }) &&
					!slices.ContainsFunc(newer.Plain, func(c agent.PlainCall) bool { return c.CallID == id })
			})
		}
		for _, rec := range evolve.Recommend(evolve.Collect([]agent.MethodEvidence{newer}, since),
			o.calls.Policy().Recommendations) {
			back[id] = back[id] || rec.ID == id
		}
	}
	return back
}

// ownContracts lists the calls whose contract came with the call or the session.
func ownContracts(evidence []agent.MethodEvidence) map[string]bool {
	own := map[string]bool{}
	for i := range evidence {
		for _, n := range evidence[i].Notes {
			if n.OwnContract != "" {
				own[n.CallID] = true
			}
		}
	}
	return own
}

// sources gives evolve access to values, contracts and verdicts.
func (o *Operator) sources(ctx context.Context, exact bool) evolve.Sources {
	s := evolve.Sources{
		Deliverable: func(m *agent.MethodEvidence) json.RawMessage {
			session := "" // of the newest call that brought a contract of its own
			for _, n := range m.Notes {
				session = cmp.Or(n.OwnContract, session)
			}
			return o.deliverableInForce(ctx, m.Role, m.Method, session)
		},
		Wrong: func(m *agent.MethodEvidence) []string {
			a, err := o.store.Artifact(ctx, m.Role, m.Method)
			if err != nil {
				return nil // a method without an artifact has no verdicts
			}
			var ids []string
			for _, v := range a.Corrections() {
				ids = append(ids, v.CallID)
			}
			return ids
		},
	}
	if exact {
		s.Value = func(callID string) json.RawMessage {
			c, err := o.store.Call(ctx, callID)
			if err != nil || c.Outcome == nil {
				return nil
			}
			return c.Outcome.Value
		}
	}
	return s
}

// methodKey names a role's method.
type methodKey struct{ role, method string }

// deliverableInForce is that of the registry; where it has none, the one that the newest calls brought by their
// session. A proposal builds on it, and so keeps what it demands.
func (o *Operator) deliverableInForce(ctx context.Context, role, method, session string) json.RawMessage {
	if t, err := o.store.Tool(ctx, role); err == nil {
		m := t.Methods[method]
		if k, _ := contract.Merge(contract.Layers{Role: &t.Contract, Method: &m}); k != nil && len(k.Deliverable) > 0 {
			return k.Deliverable
		}
	}
	if session == "" {
		return nil
	}
	s, err := o.store.Session(ctx, session)
	if err != nil || s.Role != role || s.Contract == nil {
		return nil
	}
	return s.Contract.Deliverable
}

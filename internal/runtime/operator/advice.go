package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
)

// Values of Advice.Status.
const (
	AdviceOpen      = "open"
	AdviceApplied   = "applied"
	AdviceDismissed = "dismissed"
)

// Advice is a recommendation and a person's decision about it.
type Advice struct {
	evolve.Recommendation
	Status string `json:"status"` // open, applied or dismissed
	// CallerContracts counts the calls of the evidence that brought their own deliverable, from the call or session.
	// Such a deliverable overrides the registry's, which is all that applying changes, so these clients must change
	// theirs, too.
	CallerContracts int `json:"caller_contracts"`
}

// Recommendations evaluates the stored evidence, and changes nothing. The same evidence gives the same advice, best
// first. The cost does not grow with the log. Applied and dismissed recommendations are listed only under that status.
// sees reports whether the reader may see a call: the evidence then names only those calls, and nothing reveals the
// values of others. A nil sees means all calls.
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

// decidedAdvice returns the recommendations with that decision.
func (o *Operator) decidedAdvice(ctx context.Context, status string) ([]Advice, error) {
	if err := o.ledger.Open(ctx); err != nil {
		return nil, err
	}
	defer o.ledger.Close()
	return o.advices(status), nil
}

// shared reduces advice to what a reader of only some calls may see.
func (o *Operator) shared(ctx context.Context, a Advice, sees func(ctx context.Context, callID string) bool) Advice {
	of, err := o.store.Artifact(ctx, a.Role, a.Method)
	if err != nil {
		of = nil // declares nothing
	}
	a.Recommendation = a.Shared(of.Declares)
	a.Evidence = slices.DeleteFunc(slices.Clone(a.Evidence), func(id string) bool { return !sees(ctx, id) })
	return a
}

// adviceCount caches the result of OpenRecommendations. The zero value is ready.
type adviceCount struct {
	mu      sync.Mutex // held during a count; the ledger is opened while it is held, never the reverse
	done    bool
	open    int
	commits int64 // of the store, at the time of the count
	at      time.Time
	took    time.Duration // duration of the count
}

// OpenRecommendations returns the number of open recommendations. It is called at every scrape, so it counts again only
// after a commit, and spends at most a twentieth of the time counting. With replicas it cannot see all commits, so only
// the latter applies.
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

// openAdvice returns the undecided recommendations. It does not hold the ledger during the evaluation, which takes a
// while, so operations need not wait.
func (o *Operator) openAdvice(ctx context.Context, exact bool) ([]Advice, error) {
	verdicts, err := o.decided(ctx)
	if err != nil {
		return nil, err
	}
	return o.evaluate(ctx, verdicts, exact)
}

// evaluate returns the undecided recommendations. With exact, simulations read stored values. An applied recommendation
// is open again, with all its evidence, once the calls since its application are sufficient evidence by themselves.
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
	// only whether the evidence suffices matters here, so no values are read
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

// ownContracts returns the calls that brought their own contract, from the call or session.
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

// sources returns evolve's access to contracts and verdicts and, with exact, to values.
func (o *Operator) sources(ctx context.Context, exact bool) evolve.Sources {
	s := evolve.Sources{
		Deliverable: func(m *agent.MethodEvidence) json.RawMessage {
			session := "" // of the latest call that brought its own contract
			for _, n := range m.Notes {
				session = cmp.Or(n.OwnContract, session)
			}
			return o.deliverableInForce(ctx, m.Role, m.Method, session)
		},
		Wrong: func(m *agent.MethodEvidence) []string {
			a, err := o.store.Artifact(ctx, m.Role, m.Method)
			if err != nil {
				return nil // no artifact, no verdicts
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

// methodKey identifies a method of a role.
type methodKey struct{ role, method string }

// deliverableInForce returns the registry's deliverable or, without one, that of the session. A proposal extends it, so
// it keeps what is demanded already.
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

// maxStarving bounds the starving tools that a report names.
const maxStarving = 20

// KnownTools reports whether new tools starve. The ranking gives new tools no bonus, so prompts may never show them,
// and then no program calls them. It counts what prompts showed, not ranks: a prompt selects by the subject of its
// task.
type KnownTools struct {
	Limit          int      `json:"limit"`            // tools in a prompt, at most
	Tools          int      `json:"tools"`            // registered
	New            int      `json:"new"`              // tools registered in the window
	NewShown       int      `json:"new_shown"`        // new tools that a prompt showed in the window
	NewCalled      int      `json:"new_called"`       // new tools that a program called in the window
	NewStarving    int      `json:"new_starving"`     // new tools neither shown nor called
	Starving       []string `json:"starving"`         // roles of starving tools, at most 20, the best ranked first
	Delegated      int      `json:"delegated_calls"`  // calls by programs in the window
	DelegatedToNew int      `json:"delegated_to_new"` // calls of new tools among them
}

// knownTools builds the report from the registry and the calls of the window, in any order.
func (o *Operator) knownTools(ctx context.Context, since time.Time, calls []agent.LogEntry) (KnownTools, error) {
	k := KnownTools{Limit: o.calls.Policy().KnownToolsPromptLimit, Starving: []string{}}
	ranked, err := o.store.RankTools(ctx, o.o.Now(), math.MaxInt32)
	if err != nil {
		return k, err
	}
	delegated, shown := map[string]int{}, map[string]bool{} // by role
	for i := range calls {
		for _, role := range calls[i].PromptTools {
			shown[role] = true
		}
		if calls[i].Depth > 0 {
			delegated[calls[i].Role]++
			k.Delegated++
		}
	}
	k.Tools = len(ranked)
	for _, t := range ranked {
		if t.Tool.CreatedAt.Before(since) {
			continue
		}
		k.New++
		k.DelegatedToNew += delegated[t.Tool.Role]
		called := delegated[t.Tool.Role] > 0
		if shown[t.Tool.Role] {
			k.NewShown++
		}
		if called {
			k.NewCalled++
		}
		if shown[t.Tool.Role] || called {
			continue
		}
		if k.NewStarving++; len(k.Starving) < maxStarving {
			k.Starving = append(k.Starving, t.Tool.Role)
		}
	}
	return k, nil
}

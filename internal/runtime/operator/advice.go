package operator

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maxAdviceCalls bounds what an evaluation reads, so that it costs the same however long the daemon has run: the newest
// calls of the log, and of these the values that simulations ask for.
const maxAdviceCalls = 2000

// What became of a recommendation.
const (
	AdviceOpen      = "open"
	AdviceApplied   = "applied"
	AdviceDismissed = "dismissed"
)

// Advice is a recommendation and what a person decided about it.
type Advice struct {
	evolve.Recommendation
	Status string `json:"status"` // open, applied, dismissed
	// CallerContracts counts the calls of the evidence that brought a deliverable of their own, by call or session. It
	// wins over the registry's, which is what applying changes: their makers have to change it too.
	CallerContracts int `json:"caller_contracts"`
}

// Recommendations evaluates the newest calls of the log: the same log gives the same advice, best first. It
// changes nothing. What was applied or dismissed is listed only under that status.
func (o *Operator) Recommendations(ctx context.Context, status string) ([]Advice, error) {
	if status != AdviceApplied && status != AdviceDismissed {
		return o.openAdvice(ctx, true)
	}
	if err := o.ledger.Open(ctx); err != nil {
		return nil, err
	}
	defer o.ledger.Close()
	return o.advices(status), nil
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
// again only when something was committed since, and spends no more than a twentieth of the time on it.
func (o *Operator) OpenRecommendations(ctx context.Context) (int, error) {
	k := &o.counted
	k.mu.Lock()
	defer k.mu.Unlock()
	began, commits := o.o.Now(), o.o.Store.Stats().Commits
	if k.done && (k.commits == commits || began.Sub(k.at) < 20*k.took) {
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

// evaluate turns the log into what nobody decided about by the verdicts; exact is whether simulations are to look at
// values.
func (o *Operator) evaluate(ctx context.Context, verdicts map[string]verdict, exact bool) ([]Advice, error) {
	entries, _, err := o.newestCalls(ctx, time.Time{}, maxAdviceCalls)
	if err != nil {
		return nil, err
	}
	entries = sinceApplied(entries, verdicts)
	judged := o.verdictsOf()
	for i := range entries {
		entries[i].Verdict = judged.open(ctx, &entries[i])
	}
	e := o.evidence(ctx, entries)
	if !exact {
		e.value = nil
	}
	out := []Advice{}
	for _, rec := range evolve.Recommend(evolve.Collect(entries, e.value, e.deliverable), o.calls.Policy().Recommendations) {
		if v, known := verdicts[rec.ID]; known && v.advice.Status != AdviceApplied {
			continue // an applied one that comes back has new evidence
		}
		a := Advice{Recommendation: rec, Status: AdviceOpen}
		for _, id := range rec.Evidence {
			if e.own[id] {
				a.CallerContracts++
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// newestCalls reads the newest calls of the log that began since, newest first. It never reads further back than the
// number it may return, whatever the log holds.
func (o *Operator) newestCalls(ctx context.Context, since time.Time, most int) (calls []agent.LogEntry, more bool, err error) {
	from := agent.FormatTime(since)
	q := store.CallQuery{}
	for read := 0; read < most; {
		q.Limit = min(1000, most-read)
		page, err := o.store.ListCalls(ctx, q)
		if err != nil {
			return nil, false, err
		}
		read += len(page)
		fits := 0
		for _, e := range page {
			if e.Timestamp >= from {
				calls = append(calls, e)
				fits++
			}
		}
		if len(page) < q.Limit || fits == 0 {
			return calls, false, nil
		}
		q.Before = page[len(page)-1].CallID
	}
	return calls, true, nil
}

// sinceApplied leaves out the calls that a method answered before a recommendation about it was applied: they say
// nothing about what it is now.
func sinceApplied(entries []agent.LogEntry, verdicts map[string]verdict) []agent.LogEntry {
	since := map[methodKey]string{}
	for _, v := range verdicts {
		if v.advice.Status == AdviceApplied {
			k := methodKey{v.advice.Role, v.advice.Method}
			since[k] = max(since[k], v.at)
		}
	}
	out := entries[:0]
	for _, e := range entries {
		if e.Timestamp > since[methodKey{e.Role, e.Method}] {
			out = append(out, e)
		}
	}
	return out
}

// methodKey names a role's method.
type methodKey struct{ role, method string }

// evidence answers what evolve asks beside the log.
type evidence struct {
	value       func(callID string) json.RawMessage
	deliverable func(role, method string) json.RawMessage
	own         map[string]bool // calls whose contract came with the call or the session
}

func (o *Operator) evidence(ctx context.Context, entries []agent.LogEntry) evidence {
	own, session := map[string]bool{}, map[methodKey]string{}
	for _, e := range entries {
		k := methodKey{e.Role, e.Method}
		if e.Depth == 0 && (e.ContractSource == contract.SourceHash || e.ContractSource == contract.SourceMerged) { // the registry's method wins over delegations
			own[e.CallID] = true
			if session[k] == "" {
				session[k] = e.SessionID // the newest
			}
		}
	}
	return evidence{
		own: own,
		value: func(callID string) json.RawMessage {
			c, err := o.store.Call(ctx, callID)
			if err != nil || c.Outcome == nil {
				return nil
			}
			return c.Outcome.Value
		},
		deliverable: func(role, name string) json.RawMessage {
			return o.deliverableInForce(ctx, role, name, session[methodKey{role, name}])
		},
	}
}

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

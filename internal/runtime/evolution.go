package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// Recommendations evaluates the newest calls of the log: the same log gives the same advice, best first (C-24 to
// C-32). It changes nothing. What was applied or dismissed is listed only under that status.
func (r *Runtime) Recommendations(ctx context.Context, status string) ([]Advice, error) {
	if err := r.ledger.open(ctx, r); err != nil {
		return nil, err
	}
	if status == AdviceApplied || status == AdviceDismissed {
		defer r.ledger.close()
		return r.ledger.advices(status), nil
	}
	verdicts := maps.Clone(r.ledger.verdicts)
	r.ledger.close() // an evaluation takes a while: others need not wait for it
	all, e, err := r.evaluate(ctx, verdicts, true)
	if err != nil {
		return nil, err
	}
	return openAdvice(all, verdicts, e), nil
}

// OpenRecommendations is how many recommendations are open, for a gauge: it is asked at every scrape. It evaluates
// again only when something was committed since, and spends no more than a twentieth of the time on it.
func (r *Runtime) OpenRecommendations(ctx context.Context) (int, error) {
	k := &r.ledger.count
	k.mu.Lock()
	defer k.mu.Unlock()
	began, commits := r.o.Now(), r.store.Stats().Commits
	if k.done && (k.commits == commits || began.Sub(k.at) < 20*k.took) {
		return k.open, nil
	}
	if err := r.ledger.open(ctx, r); err != nil {
		return 0, err
	}
	verdicts := maps.Clone(r.ledger.verdicts)
	r.ledger.close()
	all, e, err := r.evaluate(ctx, verdicts, false)
	if err != nil {
		return 0, err
	}
	k.done, k.open, k.commits, k.at, k.took = true, len(openAdvice(all, verdicts, e)), commits, began, r.o.Now().Sub(began)
	return k.open, nil
}

// evaluate turns the log into recommendations. verdicts say what was applied when; exact is whether simulations are to
// look at values.
func (r *Runtime) evaluate(ctx context.Context, verdicts map[string]verdict, exact bool) ([]evolve.Recommendation, evidence, error) {
	entries, _, err := r.newestCalls(ctx, time.Time{}, maxAdviceCalls)
	if err != nil {
		return nil, evidence{}, err
	}
	entries = sinceApplied(entries, verdicts)
	e := r.evidence(ctx, entries)
	if !exact {
		e.value = nil
	}
	return evolve.Recommend(evolve.Collect(entries, e.value, e.deliverable), r.Policy().Recommendations), e, nil
}

// openAdvice is what nobody decided about.
func openAdvice(all []evolve.Recommendation, verdicts map[string]verdict, e evidence) []Advice {
	out := []Advice{}
	for _, rec := range all {
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
	return out
}

// newestCalls reads the newest calls of the log that began since, newest first. It never reads further back than the
// number it may return, whatever the log holds.
func (r *Runtime) newestCalls(ctx context.Context, since time.Time, most int) (calls []agent.LogEntry, more bool, err error) {
	from := agent.FormatTime(since)
	q := store.CallQuery{}
	for read := 0; read < most; {
		q.Limit = min(1000, most-read)
		page, err := r.store.ListCalls(ctx, q)
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

type methodKey struct{ role, method string }

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

// evidence answers what evolve asks beside the log.
type evidence struct {
	value       func(callID string) json.RawMessage
	deliverable func(role, method string) json.RawMessage
	own         map[string]bool // calls whose contract came with the call or the session
}

func (r *Runtime) evidence(ctx context.Context, entries []agent.LogEntry) evidence {
	own, session := map[string]bool{}, map[methodKey]string{}
	for _, e := range entries {
		k := methodKey{e.Role, e.Method}
		if e.ContractSource == contract.SourceHash || e.ContractSource == contract.SourceMerged {
			own[e.CallID] = true
			if session[k] == "" {
				session[k] = e.SessionID // the newest
			}
		}
	}
	return evidence{
		own: own,
		value: func(callID string) json.RawMessage {
			c, err := r.store.Call(ctx, callID)
			if err != nil || c.Outcome == nil {
				return nil
			}
			return c.Outcome.Value
		},
		deliverable: func(role, name string) json.RawMessage {
			return r.deliverableInForce(ctx, role, name, session[methodKey{role, name}])
		},
	}
}

// deliverableInForce is that of the registry; where it has none, the one that the newest calls brought by their
// session. A proposal builds on it, and so keeps what it demands.
func (r *Runtime) deliverableInForce(ctx context.Context, role, method, session string) json.RawMessage {
	if t, err := r.store.Tool(ctx, role); err == nil {
		m := t.Methods[method]
		if k, _ := contract.Merge(&t.Contract, &m, nil, nil); k != nil && len(k.Deliverable) > 0 {
			return k.Deliverable
		}
	}
	if session == "" {
		return nil
	}
	s, err := r.store.Session(ctx, session)
	if err != nil || s.Role != role || s.Contract == nil {
		return nil
	}
	return s.Contract.Deliverable
}

// AdviceDecision is a person's act on a recommendation.
type AdviceDecision struct {
	ID, Reason, Actor string
	Undo              bool // take the act back
}

// DismissRecommendation keeps the recommendation from being listed, until it is undone.
func (r *Runtime) DismissRecommendation(ctx context.Context, d AdviceDecision) (Advice, error) {
	if err := r.ledger.open(ctx, r); err != nil {
		return Advice{}, err
	}
	defer r.ledger.close()
	if d.Undo {
		return r.undoAdvice(ctx, d, AdviceDismissed)
	}
	a, err := r.findAdvice(ctx, d.ID)
	if err != nil {
		return Advice{}, err
	}
	a.Status = AdviceDismissed
	entry := r.adviceAudit(d, actRecommendationDismiss, a)
	return a, r.ledger.write(ctx, r, entry)
}

// findAdvice finds an open recommendation, store.ErrNotFound when there is none. The caller holds the ledger.
func (r *Runtime) findAdvice(ctx context.Context, id string) (Advice, error) {
	all, e, err := r.evaluate(ctx, r.ledger.verdicts, true)
	if err != nil {
		return Advice{}, err
	}
	for _, a := range openAdvice(all, r.ledger.verdicts, e) {
		if a.ID == id {
			return a, nil
		}
	}
	return Advice{}, store.ErrNotFound
}

func (r *Runtime) adviceAudit(d AdviceDecision, action string, a Advice) agent.AuditEntry {
	entry := r.audit(d.Actor, action, d.ID, d.Reason)
	entry.After, _ = json.Marshal(a) // plain data: it has a JSON form
	verb := "apply"
	if action == actRecommendationDismiss {
		verb = "dismiss"
	}
	entry.Undo = fmt.Sprintf(`POST /v1/recommendations/%s/%s {"undo": true}`, d.ID, verb)
	return entry
}

// ApplyRecommendation does what the recommendation proposes, in one commit with its audit entry. strengthen_contract
// puts the deliverable into the registry, for the one method; reforge has the next call forge anew; split_boundary
// changes nothing but the list: how to split is a person's work.
func (r *Runtime) ApplyRecommendation(ctx context.Context, d AdviceDecision) (Advice, error) {
	if err := r.ledger.open(ctx, r); err != nil {
		return Advice{}, err
	}
	defer r.ledger.close()
	if d.Undo {
		return r.undoAdvice(ctx, d, AdviceApplied)
	}
	a, err := r.findAdvice(ctx, d.ID)
	if err != nil {
		return Advice{}, err
	}
	a.Status = AdviceApplied
	entry := r.adviceAudit(d, actRecommendationApply, a)
	switch a.Kind {
	case evolve.StrengthenContract:
		err = r.applyDeliverable(ctx, a, &entry)
	case evolve.Reforge:
		err = r.applyReforge(ctx, a, &entry)
	default:
		err = r.store.AppendAudit(ctx, entry)
	}
	if err != nil {
		return Advice{}, err
	}
	r.ledger.take(entry)
	return a, nil
}

// changedContract is what applying a stronger deliverable changed, for its undo.
type changedContract struct {
	Registered  bool            `json:"registered"`            // the registry knew the role
	Method      bool            `json:"method"`                // the registry had a contract of the method
	Deliverable json.RawMessage `json:"deliverable,omitempty"` // of the method's contract
}

func (r *Runtime) applyDeliverable(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	return r.changeTool(ctx, a.Role, entry, func(t agent.Tool, registered bool) (agent.Tool, error) {
		m, had := t.Methods[a.Method]
		entry.Before, _ = json.Marshal(changedContract{Registered: registered, Method: had, Deliverable: m.Deliverable}) // plain data
		m.Deliverable = a.Proposal.Deliverable
		return withMethod(t, a.Method, m), nil
	})
}

// changeTool puts what change makes of the tool in its place, together with the audit entry. Every call of the role
// counts on the tool, so it may change in between: then change is asked again.
func (r *Runtime) changeTool(ctx context.Context, role string, entry *agent.AuditEntry, change func(t agent.Tool, registered bool) (agent.Tool, error)) error {
	for {
		t, err := r.store.Tool(ctx, role)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		registered := err == nil
		if !registered {
			t = agent.Tool{Role: role, CreatedAt: r.o.Now().UTC()}
		}
		next, err := change(t, registered)
		if err != nil {
			return err
		}
		if _, err = r.store.PutTool(ctx, next, t.Revision, entry); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// withMethod returns the tool with the method's contract, in a map of its own.
func withMethod(t agent.Tool, method string, k agent.Contract) agent.Tool {
	methods := make(map[string]agent.Contract, len(t.Methods)+1)
	for name, m := range t.Methods {
		methods[name] = m
	}
	methods[method] = k
	if k.Empty() {
		delete(methods, method)
	}
	t.Methods = methods
	return t
}

// changedProgram is what applying a reforge changed, for its undo; empty where no program was kept.
type changedProgram struct {
	Current         string `json:"current_generation,omitempty"`
	ForceRegenerate string `json:"force_regenerate,omitempty"`
}

func (r *Runtime) applyReforge(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	now, err := r.store.Artifact(ctx, a.Role, a.Method)
	if errors.Is(err, store.ErrNotFound) { // its errors kept no program: the next call forges in any case
		entry.Before, _ = json.Marshal(changedProgram{})
		return r.store.AppendAudit(ctx, *entry)
	}
	if err != nil {
		return err
	}
	entry.Before, _ = json.Marshal(changedProgram{now.CurrentID, now.ForceRegenerate}) // plain data
	reason := reforgeReason(a.ID)
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.Method, At: r.o.Now(), ForceRegenerate: &reason}
	_, err = r.store.ChangeArtifact(ctx, store.AnyRevision, change, entry)
	return err
}

// reforgePrefix begins the reason of a program that a recommendation has written anew.
const reforgePrefix = "recommendation "

func reforgeReason(id string) string { return reforgePrefix + id }

// undoAdvice takes an act back. ErrConflict when what it changed was changed again since.
func (r *Runtime) undoAdvice(ctx context.Context, d AdviceDecision, status string) (Advice, error) {
	v, known := r.ledger.verdicts[d.ID]
	if !known || v.advice.Status != status {
		return Advice{}, store.ErrNotFound
	}
	entry := r.audit(d.Actor, actRecommendationUndo, d.ID, d.Reason)
	entry.Before, _ = json.Marshal(v.advice) // plain data
	var err error
	switch {
	case status == AdviceApplied && v.advice.Kind == evolve.StrengthenContract:
		err = r.undoDeliverable(ctx, v, &entry)
	case status == AdviceApplied && v.advice.Kind == evolve.Reforge:
		err = r.undoReforge(ctx, v, &entry)
	default:
		err = r.store.AppendAudit(ctx, entry)
	}
	if err != nil {
		return Advice{}, err
	}
	r.ledger.take(entry)
	v.advice.Status = AdviceOpen
	return v.advice, nil
}

func (r *Runtime) undoDeliverable(ctx context.Context, v verdict, entry *agent.AuditEntry) error {
	var before changedContract
	if err := json.Unmarshal(v.before, &before); err != nil {
		return fmt.Errorf("read what applying %s changed: %w", v.advice.ID, err)
	}
	return r.changeTool(ctx, v.advice.Role, entry, func(t agent.Tool, registered bool) (agent.Tool, error) {
		m := t.Methods[v.advice.Method]
		if !registered {
			return t, store.ErrNotFound
		}
		if !sameJSON(m.Deliverable, v.advice.Proposal.Deliverable) {
			return t, store.ErrConflict
		}
		m.Deliverable = before.Deliverable
		return withMethod(t, v.advice.Method, m), nil
	})
}

// sameJSON compares without white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// undoReforge clears the request for a new program, or goes back to the old one where it was forged already.
func (r *Runtime) undoReforge(ctx context.Context, v verdict, entry *agent.AuditEntry) error {
	var before changedProgram
	if err := json.Unmarshal(v.before, &before); err != nil {
		return fmt.Errorf("read what applying %s changed: %w", v.advice.ID, err)
	}
	a, err := r.store.Artifact(ctx, v.advice.Role, v.advice.Method)
	if before.Current == "" && (err == nil || errors.Is(err, store.ErrNotFound)) {
		return r.store.AppendAudit(ctx, *entry) // nothing was changed
	}
	if err != nil {
		return err
	}
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: r.o.Now()}
	switch {
	case a.CurrentID != before.Current && a.Find(before.Current) != nil:
		change.Current = before.Current
	case a.CurrentID == before.Current && a.ForceRegenerate == reforgeReason(v.advice.ID):
		change.ForceRegenerate = &before.ForceRegenerate
	default:
		return store.ErrConflict
	}
	_, err = r.store.ChangeArtifact(ctx, store.AnyRevision, change, entry)
	return err
}

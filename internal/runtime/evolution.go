package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Bounds of what an evaluation reads, so that it costs the same however long the daemon has run.
const (
	maxAdviceCalls  = 2000 // the newest calls of the log
	maxAdviceValues = 500  // values, for simulations
)

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
	defer r.ledger.close()
	if status == AdviceApplied || status == AdviceDismissed {
		return r.ledger.advices(status), nil
	}
	return r.openAdvice(ctx)
}

// openAdvice is what nobody decided about. The caller holds the ledger.
func (r *Runtime) openAdvice(ctx context.Context) ([]Advice, error) {
	all, err := r.advice(ctx)
	out := []Advice{}
	for _, a := range all {
		if v, known := r.ledger.verdicts[a.ID]; !known || v.advice.Status == AdviceApplied {
			out = append(out, a) // an applied one that comes back has new evidence
		}
	}
	return out, err
}

// advice evaluates the log. The caller holds the ledger.
func (r *Runtime) advice(ctx context.Context) ([]Advice, error) {
	entries, _, err := r.newestCalls(ctx, time.Time{}, maxAdviceCalls)
	if err != nil {
		return nil, err
	}
	entries = r.sinceApplied(entries)
	e := r.evidence(ctx, entries)
	p := r.Policy()
	var out []Advice
	for _, rec := range evolve.Recommend(evolve.Collect(entries, e.value, e.deliverable), p.Recommendations) {
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
// nothing about what it is now. The caller holds the ledger.
func (r *Runtime) sinceApplied(entries []agent.LogEntry) []agent.LogEntry {
	since := map[methodKey]string{}
	for _, v := range r.ledger.verdicts {
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

// evidence reads values only of methods that a simulation may be about: those with weak successes.
func (r *Runtime) evidence(ctx context.Context, entries []agent.LogEntry) evidence {
	own, weak, session, method := map[string]bool{}, map[methodKey]bool{}, map[methodKey]string{}, map[string]methodKey{}
	for _, e := range entries {
		k := methodKey{e.Role, e.Method}
		method[e.CallID] = k
		weak[k] = weak[k] || e.WeakSuccess
		if e.ContractSource == contract.SourceHash || e.ContractSource == contract.SourceMerged {
			own[e.CallID] = true
			if session[k] == "" {
				session[k] = e.SessionID // the newest
			}
		}
	}
	read := 0
	return evidence{
		own: own,
		value: func(callID string) json.RawMessage {
			if !weak[method[callID]] || read == maxAdviceValues {
				return nil
			}
			read++
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

// findAdvice finds an open recommendation, store.ErrNotFound when there is none.
func (r *Runtime) findAdvice(ctx context.Context, id string) (Advice, error) {
	all, err := r.openAdvice(ctx)
	if err != nil {
		return Advice{}, err
	}
	for _, a := range all {
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
	t, err := r.store.Tool(ctx, a.Role)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	before := changedContract{Registered: err == nil}
	revision := t.Revision
	if !before.Registered {
		t, revision = agent.Tool{Role: a.Role, CreatedAt: r.o.Now().UTC()}, 0
	}
	m, had := t.Methods[a.Method]
	before.Method, before.Deliverable = had, m.Deliverable
	entry.Before, _ = json.Marshal(before) // plain data
	m.Deliverable = a.Proposal.Deliverable
	_, err = r.store.PutTool(ctx, withMethod(t, a.Method, m), revision, entry)
	return err
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

func (r *Runtime) applyReforge(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	now, err := r.store.Artifact(ctx, a.Role, a.Method)
	if err != nil {
		return err
	}
	entry.Before = summary(now)
	reason := "recommendation " + a.ID
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.Method, At: r.o.Now(), ForceRegenerate: &reason, ResetRepairs: true}
	_, err = r.store.ChangeArtifact(ctx, store.AnyRevision, change, entry)
	return err
}

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
	t, err := r.store.Tool(ctx, v.advice.Role)
	if err != nil {
		return err
	}
	m := t.Methods[v.advice.Method]
	if !sameJSON(m.Deliverable, v.advice.Proposal.Deliverable) {
		return store.ErrConflict
	}
	m.Deliverable = before.Deliverable
	_, err = r.store.PutTool(ctx, withMethod(t, v.advice.Method, m), t.Revision, entry)
	return err
}

// sameJSON compares without white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// undoReforge clears the request for a new program, or goes back to the old one where it was forged already.
func (r *Runtime) undoReforge(ctx context.Context, v verdict, entry *agent.AuditEntry) error {
	var before struct {
		Current string `json:"current_generation"`
	}
	if err := json.Unmarshal(v.before, &before); err != nil {
		return fmt.Errorf("read what applying %s changed: %w", v.advice.ID, err)
	}
	a, err := r.store.Artifact(ctx, v.advice.Role, v.advice.Method)
	if err != nil {
		return err
	}
	none := ""
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: r.o.Now(), ForceRegenerate: &none}
	if a.CurrentID != before.Current {
		if a.Find(before.Current) == nil {
			return store.ErrConflict
		}
		change = agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: r.o.Now(), Current: before.Current}
	}
	_, err = r.store.ChangeArtifact(ctx, store.AnyRevision, change, entry)
	return err
}

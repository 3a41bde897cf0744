package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// AdviceDecision is a person's decision on a recommendation.
type AdviceDecision struct {
	ID, Reason, Actor string
	Undo              bool // undo the decision
}

// DismissRecommendation keeps the recommendation from being listed, until it is undone.
func (o *Operator) DismissRecommendation(ctx context.Context, d AdviceDecision) (Advice, error) {
	done, err := o.decide(ctx)
	if err != nil {
		return Advice{}, err
	}
	defer done()
	if d.Undo {
		return o.undoAdvice(ctx, d, AdviceDismissed)
	}
	a, err := o.findAdvice(ctx, d.ID)
	if err != nil {
		return Advice{}, err
	}
	a.Status = AdviceDismissed
	entry := o.adviceAudit(d, opRecommendationDismiss, a)
	return a, o.store.AppendAudit(ctx, entry)
}

// findAdvice finds an open recommendation, store.ErrNotFound when there is none. The caller holds the ledger.
func (o *Operator) findAdvice(ctx context.Context, id string) (Advice, error) {
	all, err := o.evaluate(ctx, o.ledger.All(), true)
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

func (o *Operator) adviceAudit(d AdviceDecision, action string, a Advice) agent.AuditEntry {
	entry := o.audit(d.Actor, action, d.ID, d.Reason)
	entry.After = agent.Encoded(a)
	verb := "apply"
	if action == opRecommendationDismiss {
		verb = "dismiss"
	}
	entry.Undo = fmt.Sprintf(`POST /v1/recommendations/%s/%s {"undo": true}`, d.ID, verb)
	return entry
}

// ApplyRecommendation does what the recommendation proposes, in one commit with its audit entry. strengthen_contract
// puts the deliverable into the registry, for the one method; reforge has the next call forge anew; split_boundary
// changes nothing but the list: how to split is a person's work.
func (o *Operator) ApplyRecommendation(ctx context.Context, d AdviceDecision) (Advice, error) {
	done, err := o.decide(ctx)
	if err != nil {
		return Advice{}, err
	}
	defer done()
	if d.Undo {
		return o.undoAdvice(ctx, d, AdviceApplied)
	}
	a, err := o.findAdvice(ctx, d.ID)
	if err != nil {
		return Advice{}, err
	}
	a.Status = AdviceApplied
	entry := o.adviceAudit(d, opRecommendationApply, a)
	switch a.Kind {
	case evolve.StrengthenContract:
		err = o.applyDeliverable(ctx, a, &entry)
	case evolve.Reforge:
		err = o.applyReforge(ctx, a, &entry)
	default:
		err = o.store.AppendAudit(ctx, entry)
	}
	if err != nil {
		return Advice{}, err
	}
	return a, nil
}

// changedContract is what applying a stronger deliverable changed, for its undo.
type changedContract struct {
	Registered  bool            `json:"registered"`            // the registry knew the role
	Method      bool            `json:"method"`                // the registry had a contract of the method
	Deliverable json.RawMessage `json:"deliverable,omitempty"` // of the method's contract
}

func (o *Operator) applyDeliverable(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	return o.changeTool(ctx, a.Role, entry, func(t agent.Tool, registered bool) (agent.Tool, error) {
		m, had := t.Methods[a.Method]
		entry.Before = agent.Encoded(changedContract{Registered: registered, Method: had, Deliverable: m.Deliverable})
		m.Deliverable = a.Proposal.Deliverable
		return withMethod(t, a.Method, m), nil
	})
}

// changeTool puts what change makes of the tool in its place, together with the audit entry. Every call of the role
// counts on the tool, so it may change in between: then change is asked again.
func (o *Operator) changeTool(ctx context.Context, role string, entry *agent.AuditEntry,
	change func(t agent.Tool, registered bool) (agent.Tool, error)) error {
	for {
		t, err := o.store.Tool(ctx, role)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		registered := err == nil
		if !registered {
			t = agent.Tool{Role: role, CreatedAt: o.o.Now().UTC()}
		}
		next, err := change(t, registered)
		if err != nil {
			return err
		}
		if _, err = o.store.PutTool(ctx, next, t.Revision, entry); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// withMethod returns the tool with the method's contract, in a map of its own.
func withMethod(t agent.Tool, method string, k agent.Contract) agent.Tool {
	methods := make(map[string]agent.Contract, len(t.Methods)+1)
	maps.Copy(methods, t.Methods)
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

func (o *Operator) applyReforge(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	now, err := o.store.Artifact(ctx, a.Role, a.Method)
	if errors.Is(err, store.ErrNotFound) { // its errors kept no program: the next call forges in any case
		entry.Before = agent.Encoded(changedProgram{})
		return o.store.AppendAudit(ctx, *entry)
	}
	if err != nil {
		return err
	}
	entry.Before = agent.Encoded(changedProgram{now.CurrentID, now.ForceRegenerate})
	reason := reforgeReason(a.ID)
	change := agent.ArtifactChange{Role: a.Role, MethodName: a.Method, At: o.o.Now(), ForceRegenerate: &reason}
	_, err = o.changeArtifact(ctx, store.AnyRevision, change, entry)
	return err
}

func reforgeReason(id string) string { return runtime.ReforgePrefix + id }

// undoAdvice undoes a decision. ErrConflict when what it changed was changed again since.
func (o *Operator) undoAdvice(ctx context.Context, d AdviceDecision, status string) (Advice, error) {
	v, known := o.ledger.All()[d.ID]
	if !known || v.advice.Status != status {
		return Advice{}, store.ErrNotFound
	}
	entry := o.audit(d.Actor, opRecommendationUndo, d.ID, d.Reason)
	entry.Before = agent.Encoded(v.advice)
	var err error
	switch {
	case status == AdviceApplied && v.advice.Kind == evolve.StrengthenContract:
		err = o.undoDeliverable(ctx, v, &entry)
	case status == AdviceApplied && v.advice.Kind == evolve.Reforge:
		err = o.undoReforge(ctx, v, &entry)
	default:
		err = o.store.AppendAudit(ctx, entry)
	}
	if err != nil {
		return Advice{}, err
	}
	v.advice.Status = AdviceOpen
	return v.advice, nil
}

// adviceStands returns store.ErrNotFound or store.ErrConflict where what applying the recommendation changed was changed again since.
func (o *Operator) adviceStands(ctx context.Context, v verdict) error {
	switch {
	case v.advice.Status != AdviceApplied:
		return nil
	case v.advice.Kind == evolve.StrengthenContract:
		t, err := o.store.Tool(ctx, v.advice.Role)
		if err == nil {
			_, err = v.weaker(t)
		}
		return err
	case v.advice.Kind == evolve.Reforge:
		_, err := o.reforgeBack(ctx, v)
		return err
	}
	return nil
}

// weaker returns the tool with the method's deliverable of before.
func (v *verdict) weaker(t agent.Tool) (agent.Tool, error) {
	var before changedContract
	if err := json.Unmarshal(v.before, &before); err != nil {
		return t, fmt.Errorf("read what applying %s changed: %w", v.advice.ID, err)
	}
	m := t.Methods[v.advice.Method]
	if !sameJSON(m.Deliverable, v.advice.Proposal.Deliverable) {
		return t, store.ErrConflict
	}
	m.Deliverable = before.Deliverable
	return withMethod(t, v.advice.Method, m), nil
}

func (o *Operator) undoDeliverable(ctx context.Context, v verdict, entry *agent.AuditEntry) error {
	return o.changeTool(ctx, v.advice.Role, entry, func(t agent.Tool, registered bool) (agent.Tool, error) {
		if !registered {
			return t, store.ErrNotFound
		}
		return v.weaker(t)
	})
}

// sameJSON compares without white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// undoReforge clears the request for a new program, or goes back to the old one where it was forged already.
func (o *Operator) undoReforge(ctx context.Context, v verdict, entry *agent.AuditEntry) error {
	change, err := o.reforgeBack(ctx, v)
	if err != nil {
		return err
	}
	if change == nil {
		return o.store.AppendAudit(ctx, *entry)
	}
	_, err = o.changeArtifact(ctx, store.AnyRevision, *change, entry)
	return err
}

// reforgeBack is what takes a request for a new program back, nil where nothing was changed.
func (o *Operator) reforgeBack(ctx context.Context, v verdict) (*agent.ArtifactChange, error) {
	var before changedProgram
	if err := json.Unmarshal(v.before, &before); err != nil {
		return nil, fmt.Errorf("read what applying %s changed: %w", v.advice.ID, err)
	}
	a, err := o.store.Artifact(ctx, v.advice.Role, v.advice.Method)
	if before.Current == "" && (err == nil || errors.Is(err, store.ErrNotFound)) {
		return nil, nil //nolint:nilnil // nothing was changed
	}
	if err != nil {
		return nil, err
	}
	change := &agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: o.o.Now()}
	switch {
	case a.CurrentID != before.Current && a.Find(before.Current) != nil:
		change.Current = before.Current
	case a.CurrentID == before.Current && a.ForceRegenerate == reforgeReason(v.advice.ID):
		change.ForceRegenerate = &before.ForceRegenerate
	default:
		return nil, store.ErrConflict
	}
	return change, nil
}

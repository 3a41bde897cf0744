package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/store"
)

// AdviceDecision is a person's decision about a recommendation.
type AdviceDecision struct {
	ID, Reason, Actor string
	Undo              bool // undo the earlier decision
}

// DismissRecommendation hides the recommendation from the open ones, until the decision is undone. It returns
// store.ErrNotFound if there is no such recommendation to dismiss or undo.
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

// findAdvice returns an open recommendation, or store.ErrNotFound. The caller holds the ledger.
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

// adviceAudit returns the audit entry of a decision, which contains the advice for its undo.
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
// puts the deliverable into the registry, for that method only. reforge makes the next call forge a new program.
// split_boundary changes nothing but its status: splitting is a person's work.
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

// changedContract is the state before a stronger deliverable was applied, for its undo.
type changedContract struct {
	Registered  bool            `json:"registered"`            // the role was registered
	Method      bool            `json:"method"`                // the method had a contract
	Deliverable json.RawMessage `json:"deliverable,omitempty"` // of the method's contract
}

// applyDeliverable puts the proposed deliverable into the registry, for that method only.
func (o *Operator) applyDeliverable(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	return o.changeTool(ctx, a.Role, entry, func(t agent.Tool, registered bool) (agent.Tool, error) {
		m, had := t.Methods[a.Method]
		entry.Before = agent.Encoded(changedContract{Registered: registered, Method: had, Deliverable: m.Deliverable})
		m.Deliverable = a.Proposal.Deliverable
		return withMethod(t, a.Method, m), nil
	})
}

// changeTool replaces the tool by the result of change, together with the audit entry. Each call of the role updates
// the tool's counters, so the tool may change concurrently. change is then called again.
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

// withMethod returns the tool with another contract for the method. It copies the map, which others share.
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

// changedProgram is the state before a reforge was applied, for its undo. It is empty if no program was kept.
type changedProgram struct {
	Current         string `json:"current_generation,omitempty"`
	ForceRegenerate string `json:"force_regenerate,omitempty"`
}

// applyReforge makes the next call forge a new program.
func (o *Operator) applyReforge(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	now, err := o.store.Artifact(ctx, a.Role, a.Method)
	if errors.Is(err, store.ErrNotFound) { // only errors so far: the next call forges anyway
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

// reforgeReason marks a request for a new program as the recommendation's, so that an undo recognizes it.
func reforgeReason(id string) string { return forge.ReforgePrefix + id }

// undoAdvice undoes a decision. It returns store.ErrConflict if the object of the decision was changed since.
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

// adviceStands returns store.ErrNotFound or store.ErrConflict if the object of an applied recommendation was changed
// since.
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

// weaker returns the tool with the method's previous deliverable.
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

// undoDeliverable restores the method's previous deliverable.
func (o *Operator) undoDeliverable(ctx context.Context, v verdict, entry *agent.AuditEntry) error {
	return o.changeTool(ctx, v.advice.Role, entry, func(t agent.Tool, registered bool) (agent.Tool, error) {
		if !registered {
			return t, store.ErrNotFound
		}
		return v.weaker(t)
	})
}

// sameJSON compares two values, ignoring white space.
func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// undoReforge withdraws the request for a new program or, if there is one already, returns to the old one.
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

// reforgeBack returns the change that undoes a reforge, or nil if the reforge changed nothing.
func (o *Operator) reforgeBack(ctx context.Context, v verdict) (*agent.ArtifactChange, error) {
	var before changedProgram
	if err := json.Unmarshal(v.before, &before); err != nil {
		return nil, fmt.Errorf("read what applying %s changed: %w", v.advice.ID, err)
	}
	a, err := o.store.Artifact(ctx, v.advice.Role, v.advice.Method)
	if before.Current == "" && (err == nil || errors.Is(err, store.ErrNotFound)) {
		return nil, nil // nothing was changed
	}
	if err != nil {
		return nil, err
	}
	change := &agent.ArtifactChange{Role: a.Role, MethodName: a.MethodName, At: o.o.Now()}
	switch {
	// the new program was forged already: return to the old one
	case a.CurrentID != before.Current && a.Find(before.Current) != nil:
		change.Current = before.Current
	// not forged yet: withdraw the request
	case a.CurrentID == before.Current && a.ForceRegenerate == reforgeReason(v.advice.ID):
		change.ForceRegenerate = &before.ForceRegenerate
	default:
		return nil, store.ErrConflict
	}
	return change, nil
}

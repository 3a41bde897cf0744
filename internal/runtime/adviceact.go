package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/evolve"
	"github.com/recurgentd/recurgentd/internal/store"
)

// AdviceDecision is a person's act on a recommendation.
type AdviceDecision struct {
	ID, Reason, Actor string
	Undo              bool // take the act back
}

// DismissRecommendation keeps the recommendation from being listed, until it is undone.
func (r *Runtime) DismissRecommendation(ctx context.Context, d AdviceDecision) (Advice, error) {
	if err := r.ledger.open(ctx); err != nil {
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
	return a, r.ledger.write(ctx, entry)
}

// findAdvice finds an open recommendation, store.ErrNotFound when there is none. The caller holds the ledger.
func (r *Runtime) findAdvice(ctx context.Context, id string) (Advice, error) {
	all, err := r.evaluate(ctx, r.ledger.verdicts, true)
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
	entry.After = encoded(a)
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
	if err := r.ledger.open(ctx); err != nil {
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
		entry.Before = encoded(changedContract{Registered: registered, Method: had, Deliverable: m.Deliverable})
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

func (r *Runtime) applyReforge(ctx context.Context, a Advice, entry *agent.AuditEntry) error {
	now, err := r.store.Artifact(ctx, a.Role, a.Method)
	if errors.Is(err, store.ErrNotFound) { // its errors kept no program: the next call forges in any case
		entry.Before = encoded(changedProgram{})
		return r.store.AppendAudit(ctx, *entry)
	}
	if err != nil {
		return err
	}
	entry.Before = encoded(changedProgram{now.CurrentID, now.ForceRegenerate})
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
	entry.Before = encoded(v.advice)
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

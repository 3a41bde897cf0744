package operator

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// An AuditView is an entry of the audit trail, with the current state of its operation.
type AuditView struct {
	agent.AuditEntry
	// id of the entry that undid it; "" while it is in force
	UndoneBy string `json:"undone_by,omitempty"`
	// nil if the operation cannot be undone, or if its undo would be refused now
	UndoRequest *UndoOffered `json:"undo_request"`
	UndoRefused string       `json:"undo_refused,omitempty"` // the reason for a refusal
}

// UndoOffered is a request that undoes an operation, ready to send.
type UndoOffered struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body"`   // null if there is none
	Scopes []string        `json:"scopes"` // needs all of them
}

// AuditEntry returns an entry of the audit trail. It returns store.ErrNotFound for an unknown id.
func (o *Operator) AuditEntry(ctx context.Context, id string) (AuditView, error) {
	e, err := o.auditEntry(ctx, id)
	if err != nil {
		return AuditView{}, err
	}
	return o.auditView(ctx, e)
}

// AuditViews returns the entries with the current state of their operations.
func (o *Operator) AuditViews(ctx context.Context, entries []agent.AuditEntry) ([]AuditView, error) {
	views := make([]AuditView, len(entries))
	for i, e := range entries {
		var err error
		if views[i], err = o.auditView(ctx, e); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// auditEntry searches the audit trail for an entry, newest first. It returns store.ErrNotFound if there is none.
func (o *Operator) auditEntry(ctx context.Context, id string) (agent.AuditEntry, error) {
	const page = 500
	for before := ""; ; {
		entries, err := o.store.Audit(ctx, store.AuditQuery{Before: before, Limit: page})
		if err != nil {
			return agent.AuditEntry{}, err
		}
		for _, e := range entries {
			if e.ID == id {
				return e, nil
			}
		}
		if len(entries) < page {
			return agent.AuditEntry{}, store.ErrNotFound
		}
		before = store.AuditCursor(&entries[len(entries)-1])
	}
}

// auditView determines whether the operation was undone or can be. A refused undo is not an error.
func (o *Operator) auditView(ctx context.Context, e agent.AuditEntry) (v AuditView, err error) {
	v.AuditEntry = e
	if v.UndoneBy, err = o.undos.by(ctx, e.ID); err != nil || v.UndoneBy != "" || e.Undo == "" {
		return v, err
	}
	v.UndoRequest, err = o.offerUndo(ctx, e)
	var refused *agent.InputError
	if errors.As(err, &refused) {
		v.UndoRefused, err = refused.Detail, nil
	}
	return v, err
}

// offerUndo returns the request that undoes the operation, or an *agent.InputError with the reason why there is none.
func (o *Operator) offerUndo(ctx context.Context, e agent.AuditEntry) (*UndoOffered, error) {
	scope := "operate"
	if administers(e) {
		scope = "admin"
	}
	request, inPlace := strings.CutPrefix(e.Undo, "POST /v1/maintenance/audit/")
	switch {
	case inPlace:
		if _, err := o.planUndo(ctx, e, &agent.AuditEntry{}); err != nil {
			return nil, err
		}
		return &UndoOffered{"POST", "/v1/maintenance/audit/" + request, json.RawMessage("{}"), []string{scope}}, nil
	case strings.HasPrefix(e.Undo, irreversible):
		return nil, cannotUndo(strings.TrimPrefix(e.Undo, irreversible), "")
	case e.Action == opVerdict:
		return o.offerVerdictBack(ctx, e)
	case e.Action == opRecommendationApply, e.Action == opRecommendationDismiss:
		return o.offerAdviceBack(ctx, e)
	}
	return nil, cannotUndo("it takes more than a request: "+e.Undo, "")
}

// offerVerdictBack offers to withdraw a verdict, if it is unchanged since the operation.
func (o *Operator) offerVerdictBack(ctx context.Context, e agent.AuditEntry) (*UndoOffered, error) {
	var given auditedVerdict
	if json.Unmarshal(e.After, &given) != nil || given.CallID == "" {
		return nil, cannotUndo("the entry does not hold what was after", "")
	}
	a, _, err := o.findVerdict(ctx, given.CallID)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrGone) {
		return nil, err
	}
	if a == nil || !sameJSON(verdictOn(given.CallID)(a), e.After) {
		return nil, cannotUndo("the call is judged differently now, or not at all", "")
	}
	return &UndoOffered{"DELETE", "/v1/calls/" + given.CallID + "/verdict", nil, []string{"call", "operate"}}, nil
}

// offerAdviceBack offers to undo a decision about a recommendation, if it is the latest one.
func (o *Operator) offerAdviceBack(ctx context.Context, e agent.AuditEntry) (*UndoOffered, error) {
	decided, err := o.decided(ctx)
	if err != nil {
		return nil, err
	}
	v, known := decided[e.Target]
	if !known || v.at != e.Timestamp {
		return nil, cannotUndo("the recommendation was decided about again since", "")
	}
	err = o.adviceStands(ctx, v)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
		return nil, cannotUndo("what it changed was changed again since", "")
	}
	if err != nil {
		return nil, err
	}
	verb := "apply"
	if e.Action == opRecommendationDismiss {
		verb = "dismiss"
	}
	return &UndoOffered{"POST", "/v1/recommendations/" + e.Target + "/" + verb, json.RawMessage(`{"undo":true}`),
		[]string{"operate"}}, nil
}

package operator

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
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
		return nil, cannotUndo("the entry does not contain the state after it", "")
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
		return nil, cannotUndo("the recommendation was decided on again since", "")
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

// auditedValue bounds a value in the audit trail, in bytes. Of a longer one only the size is kept.
const auditedValue = 4 << 10

// auditedVerdict is a verdict in the audit trail. Its entry names the session, and is erased with it.
type auditedVerdict struct {
	CallID       string          `json:"call_id"`
	Verdict      string          `json:"verdict"`
	State        string          `json:"state"`
	By           string          `json:"by,omitempty"`
	Note         string          `json:"note,omitempty"`
	Expected     json.RawMessage `json:"expected,omitempty"`
	ExpectedType string          `json:"expected_error_type,omitempty"`
	ExampleID    string          `json:"example_id,omitempty"`
}

// verdictOn returns a function that returns the artifact's verdict on the call for the audit trail, or nil.
func verdictOn(callID string) func(a *agent.Artifact) json.RawMessage {
	return func(a *agent.Artifact) json.RawMessage {
		v := a.Verdict(callID)
		if v == nil {
			return nil
		}
		return agent.Encoded(auditedVerdict{v.CallID, v.Verdict, v.State, v.By, v.Note,
			trail.Brief(v.Expected, auditedValue), v.ExpectedErrorType, v.ExampleID})
	}
}

// auditedExample is an example in the audit trail. Data from a call of a session is left out, since it is erased with
// the session.
type auditedExample struct {
	ID     string          `json:"id"`
	State  string          `json:"state"`
	By     string          `json:"by,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	Note   string          `json:"note,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	Expect json.RawMessage `json:"expect,omitempty"`
}

// examplesOf returns the artifact's examples for the audit trail.
func examplesOf(a *agent.Artifact) json.RawMessage {
	list := make([]auditedExample, len(a.Examples))
	for i := range a.Examples {
		x := &a.Examples[i]
		list[i] = auditedExample{ID: x.ID, State: x.State, By: x.By, CallID: x.CallID}
		if x.SessionID == "" {
			list[i].Note, list[i].Args, list[i].Kwargs = x.Note, trail.Brief(agent.Encoded(x.Args), auditedValue),
				trail.Brief(x.Kwargs, auditedValue)
			list[i].Expect = trail.Brief(agent.Encoded(x.Expect), auditedValue)
		}
	}
	return agent.Encoded(list)
}

// auditedTool returns a tool for the audit trail. The proposals of programs are left out, since no undo brings them
// back.
func auditedTool(t agent.Tool) json.RawMessage {
	t.Proposals = nil
	return agent.Encoded(t)
}

// Actions of the audit trail from which the ledger of recommendations is read.
const (
	opRecommendationApply   = "recommendation.apply"
	opRecommendationDismiss = "recommendation.dismiss"
	opRecommendationUndo    = "recommendation.undo"
)

// A verdict is the latest decision about a recommendation.
type verdict struct {
	advice Advice // at the time of the decision
	at     string
	before json.RawMessage // state before it was applied
}

// applyVerdict applies one audit entry to the verdicts by recommendation id.
func applyVerdict(verdicts map[string]verdict, e agent.AuditEntry) {
	switch e.Action {
	case opRecommendationApply, opRecommendationDismiss:
		var a Advice
		if json.Unmarshal(e.After, &a) == nil {
			verdicts[e.Target] = verdict{a, e.Timestamp, e.Before}
		}
	case opRecommendationUndo:
		delete(verdicts, e.Target)
	}
}

// decided returns a copy of the verdicts, for evaluations that would hold the ledger too long.
func (o *Operator) decided(ctx context.Context) (map[string]verdict, error) {
	if err := o.ledger.Open(ctx); err != nil {
		return nil, err
	}
	defer o.ledger.Close()
	return maps.Clone(o.ledger.All()), nil
}

// decideTTL is how long decisions are blocked after a replica died during one.
const decideTTL = 15 * time.Second

// decide opens the ledger for a decision. No other decision takes place, on any replica, until done is called.
func (o *Operator) decide(ctx context.Context) (done func(), err error) {
	// the lease first: the ledger must be read after the last decision of another replica
	release := func() {}
	if o.o.Shared {
		lease, err := o.store.Lease(ctx, "recommendations", store.LeaseOptions{TTL: decideTTL, Wait: true})
		if err != nil {
			return nil, err
		}
		release = lease.Release
	}
	if err := o.ledger.Open(ctx); err != nil {
		release()
		return nil, err
	}
	return func() {
		o.ledger.Close()
		release()
		o.advised.Ring()
	}, nil
}

// advices returns the recommendations of that status, sorted by id. The caller holds the ledger.
func (o *Operator) advices(status string) []Advice {
	out := []Advice{}
	for _, v := range o.ledger.All() {
		if v.advice.Status == status {
			out = append(out, v.advice)
		}
	}
	slices.SortFunc(out, func(a, b Advice) int { return strings.Compare(a.ID, b.ID) })
	return out
}

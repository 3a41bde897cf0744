package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Operations that the audit trail records and Undo undoes.
const (
	opPolicy      = "policy.change"
	opToolPut     = "tool.put"
	opToolArchive = "tool.archive"
	opToolReject  = "tool.reject" // a proposed contract
	opArchive     = "artifact.archive"
	opPut         = "artifact.put"
	opEffects     = "artifact.effects"
	opUndo        = "artifact.undo" // of any operation on one artifact
	opExport      = "store.export"
	opCancel      = "call.cancel"
	opExpire      = "maintenance.expire"
	opPrune       = "maintenance.prune"
	opRestore     = "maintenance.restore"
	onArtifacts   = "artifact."

	opVerdict       = "verdict.put"
	opVerdictDrop   = "verdict.delete"
	opExamples      = "examples.put"
	opExampleAccept = "example.accept"
	opExampleReject = "example.reject"
)

// undoable reports whether Undo knows operations of that kind.
func undoable(action string) bool {
	return slices.Contains([]string{opPolicy, opToolPut, opToolArchive, opPrune, opRestore, opConnectionPut,
		opConnectionDelete}, action) || strings.HasPrefix(action, onArtifacts)
}

// irreversible begins the undo field of an entry that cannot be undone.
const irreversible = "none: "

// undoPath is the request that undoes an operation.
func undoPath(auditID string) string { return "POST /v1/maintenance/audit/" + auditID + "/undo" }

// ErrAdminOnly is returned where what is asked needs the right to administer.
var ErrAdminOnly = errors.New("only an administrator may do this")

// UndoRequest says what to undo.
type UndoRequest struct {
	AuditID, Reason, Actor string
	Admin                  bool // the actor may administer: change connections and what may be spent
}

// administers reports whether the operation was one for administrators.
func administers(was agent.AuditEntry) bool {
	return slices.Contains([]string{opConnectionPut, opConnectionDelete}, was.Action) || was.Action == opPolicy &&
		string(spendOf(was.Before)) != string(spendOf(was.After))
}

// spendOf returns what a policy lets spend, nil where it does not say.
func spendOf(policy json.RawMessage) json.RawMessage {
	var p struct {
		Spend json.RawMessage `json:"spend"`
	}
	_ = json.Unmarshal(policy, &p) // an entry that holds no policy is refused by who undoes it
	return p.Spend
}

// Undo undoes the operation of that audit entry, and returns the entry that records the undo. If nothing has changed since, what
// the operation changed is restored byte for byte. The error is store.ErrNotFound when there is no such entry, and an *agent.InputError
// with the code cannot_undo when the operation cannot be undone, or no longer,
// and ErrAdminOnly.
func (o *Operator) Undo(ctx context.Context, q UndoRequest) (done Undone, err error) {
	o.undoing.Lock() // one at a time: nothing is undone twice
	defer o.undoing.Unlock()
	was, err := o.auditEntry(ctx, q.AuditID)
	if err != nil {
		return done, err
	}
	if !q.Admin && administers(was) {
		return done, ErrAdminOnly
	}
	by, err := o.undos.by(ctx, was.ID)
	if err != nil {
		return done, err
	}
	if by != "" {
		return done, cannotUndo("it is undone already", "undo the undo to have it again")
	}
	done.AuditEntry = o.audit(q.Actor, was.Action, was.Target, q.Reason)
	done.Undoes, done.AuditEntry.Undo = was.ID, undoPath(done.ID)
	commit, err := o.planUndo(ctx, was, &done.AuditEntry)
	if err != nil {
		return done, err
	}
	done.BroughtBack, err = o.bringingBack(ctx, rolesUndone(was), q.Actor, commit)
	return done, err
}

// Undone is the entry that records an undo, with what answers because of it.
type Undone struct {
	agent.AuditEntry
	BroughtBack
}

// rolesUndone returns the roles whose methods may be answered by other programs after the undo.
func rolesUndone(was agent.AuditEntry) []string {
	var targets []store.Target
	var stood agent.Standing
	switch {
	case was.Action == opToolPut:
		return []string{was.Target}
	case slices.Contains([]string{opToolArchive, opArchive, opPrune, opRestore}, was.Action):
		_ = json.Unmarshal(was.After, &targets) // the undo has read it
	case strings.HasPrefix(was.Action, onArtifacts) && json.Unmarshal(was.After, &stood) == nil && stood.Role != "":
		return []string{stood.Role}
	}
	return rolesOf(targets)
}

// planUndo looks whether the operation can be undone as things stand, and returns what undoes it. entry records the undo; it is complete after the commit.
func (o *Operator) planUndo(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	switch {
	case strings.HasPrefix(was.Undo, irreversible):
		return nil, cannotUndo(strings.TrimPrefix(was.Undo, irreversible), "")
	case was.Action == opPolicy:
		return o.undoPolicy(ctx, was, entry)
	case was.Action == opToolPut:
		return o.undoToolPut(ctx, was, entry)
	case was.Action == opToolArchive, was.Action == opArchive, was.Action == opPrune:
		return o.undoArchive(ctx, was, entry)
	case was.Action == opRestore:
		return o.undoRestore(ctx, was, entry)
	case was.Action == opConnectionPut, was.Action == opConnectionDelete:
		return o.undoConnection(ctx, was, entry)
	case strings.HasPrefix(was.Action, onArtifacts):
		return o.undoOperation(ctx, was, entry)
	}
	return nil, cannotUndo("operations of this kind are undone differently", cmp.Or(was.Undo, "see the entry"))
}

func cannotUndo(detail, hint string) error {
	return &agent.InputError{Code: "cannot_undo", Detail: detail, Hint: hint}
}

// undoOperation undoes an operation on one artifact. A program put where there was none goes to the archive.
func (o *Operator) undoOperation(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	var from, to agent.Standing
	if json.Unmarshal(was.After, &from) != nil || from.Role == "" {
		return nil, cannotUndo("the entry is of an older kind, which does not hold what is needed", was.Undo)
	}
	a, err := o.store.Artifact(ctx, from.Role, from.MethodName)
	if errors.Is(err, store.ErrNotFound) {
		return nil, cannotUndo("there is no "+from.Role+"."+from.MethodName+" any more", "")
	}
	if err != nil {
		return nil, err
	}
	if was.Before == nil {
		target := []store.Target{{Role: from.Role, Method: from.MethodName}}
		entry.Action, entry.After = opArchive, agent.Encoded(target)
		return func() error { return o.take(ctx, target, *entry, o.store.Archive) }, nil
	}
	if json.Unmarshal(was.Before, &to) != nil {
		return nil, cannotUndo("the entry does not hold what was before", was.Undo)
	}
	entry.Action = opUndo
	revert := &agent.Revert{From: from, To: to}
	change := func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			return agent.ArtifactChange{}, store.ErrNotFound
		}
		if why := revert.Hinders(a); why != "" {
			return agent.ArtifactChange{}, cannotUndo(why, "GET "+runtime.ToolPath(from.Role, from.MethodName)+
				"/generations shows what there is")
		}
		return agent.ArtifactChange{Revert: revert}, nil
	}
	if _, err := change(a); err != nil {
		return nil, err
	}
	return func() error {
		unlock := o.calls.HoldAdoption(from.Role, from.MethodName) // no candidate is adopted meanwhile
		defer unlock()
		_, err := o.change(ctx, from.Role, from.MethodName, entry, change)
		return err
	}, nil
}

// change makes one operation on an artifact and records in the audit trail how the artifact stood before and after it. decide returns
// the operation for the current artifact, nil where there is none; it is called again when a call changed the artifact meanwhile.
func (o *Operator) change(ctx context.Context, role, method string, entry *agent.AuditEntry,
	decide func(a *agent.Artifact) (agent.ArtifactChange, error)) (*agent.Artifact, error) {
	return o.changeShown(ctx, store.Target{Role: role, Method: method}, entry,
		func(a *agent.Artifact) json.RawMessage { return agent.Encoded(a.Standing()) }, decide)
}

// changeShown is change for operations of which the audit trail records something else of the artifact.
func (o *Operator) changeShown(ctx context.Context, t store.Target, entry *agent.AuditEntry,
	show func(a *agent.Artifact) json.RawMessage,
	decide func(a *agent.Artifact) (agent.ArtifactChange, error)) (*agent.Artifact, error) {
	for range mostRaces { // busy artifacts change with every call
		a, err := o.store.Artifact(ctx, t.Role, t.Method)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		change, err := decide(a)
		if err != nil {
			return nil, err
		}
		change.Role, change.MethodName, change.At = t.Role, t.Method, o.o.Now()
		revision := int64(0)
		entry.Before = nil
		if a != nil {
			revision, entry.Before = a.Revision, show(a)
		}
		after := a.Apply(change)
		if err := o.room(ctx, entry.Actor, a, after); err != nil {
			return nil, err
		}
		entry.After = show(after)
		next, err := o.changeArtifact(ctx, revision, change, entry)
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
	}
	return nil, store.ErrConflict
}

// changeArtifact makes a person's change of an artifact. Where it is a new beginning for the method, that need not wait any more because programs failed.
func (o *Operator) changeArtifact(ctx context.Context, revision int64, change agent.ArtifactChange,
	entry *agent.AuditEntry) (*agent.Artifact, error) {
	a, err := o.store.ChangeArtifact(ctx, revision, change, entry)
	if err == nil && change.Renews() {
		o.calls.ForgetFailures(change.Role, change.MethodName)
	}
	return a, err
}

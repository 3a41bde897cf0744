package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/attempt"
	"github.com/recurgentd/recurgentd/internal/runtime/trail"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Actions in the audit trail.
const (
	opPolicy      = "policy.change"
	opToolPut     = "tool.put"
	opToolArchive = "tool.archive"
	opToolReject  = "tool.reject" // of a proposed contract
	opArchive     = "artifact.archive"
	opPut         = "artifact.put"
	opEffects     = "artifact.effects"
	opUndo        = "artifact.undo" // of any action on one artifact
	opExport      = "store.export"
	opCancel      = "call.cancel"
	opExpire      = "maintenance.expire"
	opPrune       = "maintenance.prune"
	opRestore     = "maintenance.restore"
	onArtifacts   = "artifact." // prefix of the actions on one artifact

	opVerdict       = "verdict.put"
	opVerdictDrop   = "verdict.delete"
	opExamples      = "examples.put"
	opExampleAccept = "example.accept"
	opExampleReject = "example.reject"
)

// undoable reports whether Undo handles the action.
func undoable(action string) bool {
	return slices.Contains([]string{opPolicy, opToolPut, opToolArchive, opPrune, opRestore, opConnectionPut,
		opConnectionDelete}, action) || strings.HasPrefix(action, onArtifacts)
}

// irreversible is the prefix of the undo field of an entry that cannot be undone. The reason follows.
const irreversible = "none: "

// undoPath returns the request that undoes an operation.
func undoPath(auditID string) string { return "POST /v1/maintenance/audit/" + auditID + "/undo" }

// ErrAdminOnly means that the operation needs the scope admin.
var ErrAdminOnly = errors.New("only an administrator may do this")

// UndoRequest selects the operation to undo.
type UndoRequest struct {
	AuditID, Reason, Actor string
	Admin                  bool // the actor may change connections and spending
}

// administers reports whether the operation needed the scope admin.
func administers(was agent.AuditEntry) bool {
	return slices.Contains([]string{opConnectionPut, opConnectionDelete}, was.Action) || was.Action == opPolicy &&
		string(spendOf(was.Before)) != string(spendOf(was.After))
}

// spendOf returns the caps of spending in a policy, or nil.
func spendOf(policy json.RawMessage) json.RawMessage {
	var p struct {
		Spend json.RawMessage `json:"spend"`
	}
	_ = json.Unmarshal(policy, &p) // whoever undoes the entry reports an invalid policy
	return p.Spend
}

// Undo undoes the operation of an audit entry, and returns the entry that records the undo. If nothing has changed
// since, it restores what the operation changed byte for byte. Errors are store.ErrNotFound for an unknown entry,
// ErrAdminOnly, and an *agent.InputError with the code cannot_undo if the operation cannot be undone, or not any more.
func (o *Operator) Undo(ctx context.Context, q UndoRequest) (done Undone, err error) {
	o.undoing.Lock() // one at a time, so nothing is undone twice
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
	// planUndo sets the action of the undo itself
	done.AuditEntry = o.audit(q.Actor, was.Action, was.Target, q.Reason)
	done.Undoes, done.AuditEntry.Undo = was.ID, undoPath(done.ID)
	commit, err := o.planUndo(ctx, was, &done.AuditEntry)
	if err != nil {
		return done, err
	}
	done.BroughtBack, err = o.bringingBack(ctx, rolesUndone(was), q.Actor, commit)
	return done, err
}

// Undone is the entry that records an undo, with the programs that answer again because of it.
type Undone struct {
	agent.AuditEntry
	BroughtBack
}

// rolesUndone returns the roles whose methods may have another answering program after the undo.
func rolesUndone(was agent.AuditEntry) []string {
	var targets []store.Target
	var stood agent.Standing
	switch {
	case was.Action == opToolPut:
		return []string{was.Target}
	case slices.Contains([]string{opToolArchive, opArchive, opPrune, opRestore}, was.Action):
		_ = json.Unmarshal(was.After, &targets) // planUndo has parsed it
	case strings.HasPrefix(was.Action, onArtifacts) && json.Unmarshal(was.After, &stood) == nil && stood.Role != "":
		return []string{stood.Role}
	}
	return rolesOf(targets)
}

// planUndo checks whether the operation can be undone now, and returns the function that does it. entry records the
// undo, and is complete after commit.
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

// cannotUndo returns the error for an operation that cannot be undone. An empty hint is the default of its code.
func cannotUndo(detail, hint string) error {
	return &agent.InputError{Code: "cannot_undo", Detail: detail, Hint: hint}
}

// undoOperation undoes an operation on one artifact. The first program of a method is archived.
func (o *Operator) undoOperation(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	var from, to agent.Standing
	if json.Unmarshal(was.After, &from) != nil || from.Role == "" {
		return nil, cannotUndo("the entry is of an older version, which did not record what is needed", was.Undo)
	}
	a, err := o.store.Artifact(ctx, from.Role, from.MethodName)
	if errors.Is(err, store.ErrNotFound) {
		return nil, cannotUndo(from.Role+"."+from.MethodName+" no longer exists", "")
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
		return nil, cannotUndo("the entry does not contain the state before it", was.Undo)
	}
	entry.Action = opUndo
	revert := &agent.Revert{From: from, To: to}
	change := func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			return agent.ArtifactChange{}, store.ErrNotFound
		}
		if why := revert.Hinders(a); why != "" {
			return agent.ArtifactChange{}, cannotUndo(why, "GET "+attempt.ToolPath(from.Role, from.MethodName)+
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

// change performs an operation on one artifact, and records the artifact's state before and after it in the audit
// trail. decide returns the change for the current artifact, which is nil if there is none. It is called again if a
// call changes the artifact concurrently.
func (o *Operator) change(ctx context.Context, role, method string, entry *agent.AuditEntry,
	decide func(a *agent.Artifact) (agent.ArtifactChange, error)) (*agent.Artifact, error) {
	return o.changeShown(ctx, store.Target{Role: role, Method: method}, entry,
		func(a *agent.Artifact) json.RawMessage { return agent.Encoded(a.Standing()) }, decide)
}

// changeShown is change with another view of the artifact in the audit trail: show.
func (o *Operator) changeShown(ctx context.Context, t store.Target, entry *agent.AuditEntry,
	show func(a *agent.Artifact) json.RawMessage,
	decide func(a *agent.Artifact) (agent.ArtifactChange, error)) (*agent.Artifact, error) {
	for range mostRaces { // an artifact in use changes with every call
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

// changeArtifact stores a person's change of an artifact. If the change gives the method a fresh start, it also resets
// the backoff after failures.
func (o *Operator) changeArtifact(ctx context.Context, revision int64, change agent.ArtifactChange,
	entry *agent.AuditEntry) (*agent.Artifact, error) {
	a, err := o.store.ChangeArtifact(ctx, revision, change, entry)
	if err == nil && change.Renews() {
		o.calls.ForgetFailures(change.Role, change.MethodName)
	}
	return a, err
}

// undos knows which operations undid others.
type undos struct {
	mu     sync.Mutex        // held while the trail is read
	reader *trail.Reader     // guarded by mu
	of     map[string]string // by the id of an entry, the id of the latest entry that undid it; guarded by mu
}

// by returns the id of the entry that undid the given one and is not undone itself, or "".
func (u *undos) by(ctx context.Context, id string) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	entries, anew, err := u.reader.Next(ctx)
	if err != nil {
		return "", err
	}
	if anew {
		u.of = map[string]string{}
	}
	for _, e := range entries {
		u.of[e.Undoes] = e.ID
	}
	times := 0
	// undos can be undone in turn; the bound protects against cycles in an imported trail
	for at := u.of[id]; at != "" && times <= len(u.of); at = u.of[at] {
		times++
	}
	if times%2 == 0 {
		return "", nil
	}
	return u.of[id], nil
}

// undoPolicy reverts what the operation changed, and keeps other changes since then.
func (o *Operator) undoPolicy(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	now, _, err := o.store.Policy(ctx) // from the store: another replica may have changed it just now
	if err != nil {
		return nil, err
	}
	if _, err := policyBefore(was, now); err != nil {
		return nil, err
	}
	return func() error {
		_, err := o.calls.ChangePolicy(ctx, func(now agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
			p, err := policyBefore(was, now)
			entry.Before, entry.After = agent.Encoded(now), agent.Encoded(p)
			return p, entry, err
		})
		return err
	}, nil
}

// policyBefore returns the policy without the operation's changes.
func policyBefore(was agent.AuditEntry, now agent.Policy) (p agent.Policy, err error) {
	was.Before, was.After = upgradedPolicy(was.Before), upgradedPolicy(was.After)
	back, err := jsonpatch.CreateMergePatch(was.After, was.Before)
	if err != nil {
		return p, cannotUndo("the entry does not contain the state before it", "")
	}
	later, err := jsonpatch.CreateMergePatch(was.After, agent.Encoded(now))
	if err != nil {
		return p, cannotUndo("the entry does not contain the state after it", "")
	}
	if name := overlap(back, later); name != "" {
		return p, cannotUndo(name+" was changed again since", "undo the later change first, or PATCH /v1/policy")
	}
	after, err := jsonpatch.MergePatch(agent.Encoded(now), back)
	if err != nil {
		return p, cannotUndo(err.Error(), "")
	}
	return agent.DecodeStoredPolicy(after)
}

// upgradedPolicy returns a policy from the audit trail in the format of this version, or doc itself if it is not a
// policy.
func upgradedPolicy(doc json.RawMessage) json.RawMessage {
	p, err := agent.DecodeStoredPolicy(doc)
	if err != nil {
		return doc
	}
	return agent.Encoded(p)
}

// overlap returns the path of a member that both merge patches set, or "".
func overlap(a, b json.RawMessage) string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return ""
	}
	for name, v := range x {
		w, both := y[name]
		switch {
		case !both:
		case agent.Kind(v) == "object" && agent.Kind(w) == "object":
			if inner := overlap(v, w); inner != "" {
				return name + "." + inner
			}
		default:
			return name
		}
	}
	return ""
}

// undoConnection restores the settings of a connection, but never a secret. An existing connection keeps its secret,
// unless the restored settings would let it reach further. A deleted connection is restored without secret.
func (o *Operator) undoConnection(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	before, err := settingsIn(was.Before)
	if err != nil {
		return nil, err
	}
	after, err := settingsIn(was.After)
	if err != nil {
		return nil, err
	}
	now, err := o.connection(ctx, was.Target)
	if errors.Is(err, store.ErrNotFound) && after == nil {
		return o.remake(ctx, before, entry)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, cannotUndo("the connection no longer exists", "")
	case err != nil:
		return nil, err
	case after == nil || !sameSettings(after, &now):
		return nil, cannotUndo("the connection was changed again since",
			"undo the later change first, or PUT the connection")
	}
	entry.Before = agent.Encoded(viewOf(&now))
	if before == nil {
		entry.Action = opConnectionDelete
		return func() error { return o.store.DeleteConnection(ctx, now.Name, now.Revision, entry) }, nil
	}
	if sameSettings(before, &now) {
		return nil, cannotUndo("only the secret changed, and the previous one is not kept",
			"PUT the connection with a secret")
	}
	next := *before
	if next.Exceeds(&now) == "" {
		next.Auth.Sealed, next.Auth.Env, next.Auth.File = now.Auth.Sealed, now.Auth.Env, now.Auth.File
	}
	entry.Action, entry.After = opConnectionPut, agent.Encoded(viewOf(&next))
	return func() error {
		_, err := o.store.PutConnection(ctx, next, now.Revision, entry)
		return err
	}, nil
}

// remake restores a deleted connection.
func (o *Operator) remake(ctx context.Context, before *agent.Connection,
	entry *agent.AuditEntry) (commit func() error, err error) {
	if before == nil {
		return nil, cannotUndo("the entry does not contain the state before it", "")
	}
	entry.Action, entry.After = opConnectionPut, agent.Encoded(viewOf(before))
	return func() error {
		_, err := o.store.PutConnection(ctx, *before, 0, entry)
		return err
	}, nil
}

// settingsIn returns the connection in an audit entry, without secret, or nil if there is none.
func settingsIn(raw json.RawMessage) (*agent.Connection, error) {
	if raw == nil {
		return nil, nil
	}
	var v ConnectionView
	if err := json.Unmarshal(raw, &v); err != nil || v.Name == "" {
		return nil, cannotUndo("the entry does not contain the state before it", "")
	}
	c := v.Connection
	c.Auth = v.Auth.ConnectionAuth
	c = c.WithoutSecret()
	return &c, nil
}

// sameSettings reports whether two connections are equal apart from their secrets.
func sameSettings(a, b *agent.Connection) bool {
	plain := func(c *agent.Connection) json.RawMessage {
		x := c.WithoutSecret()
		return agent.Encoded(agent.Connection{Name: x.Name, Description: x.Description, Hosts: x.Hosts,
			Methods: x.Methods, Roles: x.Roles, Auth: x.Auth,
			IdempotencyHeader: x.IdempotencyHeader})
	}
	return bytes.Equal(plain(a), plain(b))
}

package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Acts that the audit trail tells and Undo takes back.
const (
	actPolicy      = "policy.change"
	actToolPut     = "tool.put"
	actToolArchive = "tool.archive"
	actArchive     = "artifact.archive"
	actPut         = "artifact.put"
	actUndo        = "artifact.undo" // of any act on one artifact
	actPrune       = "maintenance.prune"
	actRestore     = "maintenance.restore"
	onArtifacts    = "artifact."
)

// undoable reports whether Undo knows acts of that kind.
func undoable(action string) bool {
	return slices.Contains([]string{actPolicy, actToolPut, actToolArchive, actPrune, actRestore}, action) || strings.HasPrefix(action, onArtifacts)
}

// irreversible begins the undo of an entry that nothing can take back.
const irreversible = "none: "

// undoPath is how an act is taken back, whatever it was.
func undoPath(auditID string) string { return "POST /v1/maintenance/audit/" + auditID + "/undo" }

// Undo takes back the act of that audit entry, and returns the entry that tells of it. Where nothing happened since, what
// the act changed is afterwards what it was, to the byte. store.ErrNotFound when there is no such entry; an *InputError with
// the code cannot_undo when the act cannot be taken back, or not any more.
func (r *Runtime) Undo(ctx context.Context, auditID, reason, actor string) (agent.AuditEntry, error) {
	r.undoing.Lock() // one at a time: nothing is taken back twice
	defer r.undoing.Unlock()
	was, undone, err := r.act(ctx, auditID)
	if err != nil {
		return agent.AuditEntry{}, err
	}
	if undone {
		return agent.AuditEntry{}, cannotUndo("it is undone already", "undo the undo to have it again")
	}
	entry := r.audit(actor, was.Action, was.Target, reason)
	entry.Undoes, entry.Undo = was.ID, undoPath(entry.ID)
	switch {
	case strings.HasPrefix(was.Undo, irreversible):
		return agent.AuditEntry{}, cannotUndo(strings.TrimPrefix(was.Undo, irreversible), "")
	case was.Action == actPolicy:
		err = r.undoPolicy(ctx, was, &entry)
	case was.Action == actToolPut:
		err = r.undoToolPut(ctx, was, &entry)
	case was.Action == actToolArchive, was.Action == actArchive, was.Action == actPrune:
		err = r.undoArchive(ctx, was, &entry)
	case was.Action == actRestore:
		err = r.undoRestore(ctx, was, &entry)
	case strings.HasPrefix(was.Action, onArtifacts):
		err = r.undoOperation(ctx, was, &entry)
	default:
		err = cannotUndo("acts of this kind have a way of their own", orElse(was.Undo, "the entry tells it"))
	}
	return entry, err
}

func cannotUndo(detail, hint string) error {
	return &InputError{Code: "cannot_undo", Detail: detail, Hint: hint}
}

// act finds an entry, and whether it stands undone: by an act that is not undone itself.
func (r *Runtime) act(ctx context.Context, auditID string) (agent.AuditEntry, bool, error) {
	const page = 500
	undone := map[string]bool{}
	for before := ""; ; {
		entries, err := r.store.Audit(ctx, before, page)
		if err != nil {
			return agent.AuditEntry{}, false, err
		}
		for _, e := range entries { // newest first
			if e.ID == auditID {
				return e, undone[e.ID], nil
			}
			if e.Undoes != "" && !undone[e.ID] {
				undone[e.Undoes] = true
			}
		}
		if len(entries) < page {
			return agent.AuditEntry{}, false, store.ErrNotFound
		}
		before = entries[len(entries)-1].ID
	}
}

func (r *Runtime) undoPolicy(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	r.policyMu.Lock()
	defer r.policyMu.Unlock()
	now, err := json.Marshal(r.policy.Load())
	if err != nil {
		return fmt.Errorf("encode the policy: %w", err)
	}
	back, err := jsonpatch.CreateMergePatch(was.After, was.Before)
	if err != nil {
		return cannotUndo("the entry does not hold what was before", "")
	}
	later, err := jsonpatch.CreateMergePatch(was.After, now)
	if err != nil {
		return cannotUndo("the entry does not hold what was after", "")
	}
	if name := overlap(back, later); name != "" {
		return cannotUndo(name+" was changed again since", "undo the later change first, or PATCH /v1/policy")
	}
	after, err := jsonpatch.MergePatch(now, back)
	if err != nil {
		return cannotUndo(err.Error(), "")
	}
	p, err := agent.DecodePolicy(after)
	if err != nil {
		return err
	}
	if after, err = json.Marshal(p); err != nil {
		return fmt.Errorf("encode the policy: %w", err)
	}
	entry.Before, entry.After = now, after
	if err := r.store.SetPolicy(ctx, p, entry); err != nil {
		return err
	}
	r.policy.Store(&p)
	return nil
}

// overlap names a member that both merge patches set, or "".
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

// undoToolPut puts the contract back that was before, or takes away a tool that was not there.
func (r *Runtime) undoToolPut(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	now, err := r.store.Tool(ctx, was.Target)
	if errors.Is(err, store.ErrNotFound) {
		return cannotUndo("the tool is not there any more", "")
	}
	if err != nil {
		return err
	}
	var put agent.Tool
	if json.Unmarshal(was.After, &put) != nil || !sameTerms(put, now) {
		return cannotUndo("its contract was changed again since", "undo the later change first, or PUT the contract of before")
	}
	if was.Before == nil {
		target := []store.Target{{Role: was.Target, ToolOnly: true}}
		entry.Action, entry.After = actToolArchive, encoded(target)
		return r.store.Archive(ctx, target, *entry)
	}
	var old agent.Tool
	if err := json.Unmarshal(was.Before, &old); err != nil {
		return cannotUndo("the entry does not hold what was before", "")
	}
	next := now
	next.Contract, next.Methods = old.Contract, old.Methods
	entry.Before, entry.After = encoded(now), encoded(next)
	_, err = r.store.PutTool(ctx, next, now.Revision, entry)
	return err
}

// sameTerms reports whether two forms of a tool have the same contracts.
func sameTerms(a, b agent.Tool) bool {
	terms := func(t agent.Tool) json.RawMessage {
		return encoded(agent.Tool{Role: t.Role, Contract: t.Contract, Methods: t.Methods})
	}
	return bytes.Equal(terms(a), terms(b))
}

// encoded is the JSON of our own plain data, which always has one.
func encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

// undoArchive brings back what the act moved, and nothing that was archived before it.
func (r *Runtime) undoArchive(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	targets, err := targetsOf(was.After, was)
	if err != nil {
		return err
	}
	for i := range targets {
		targets[i].ToolOnly = targets[i].Method == "" // its artifacts are named beside it
	}
	entry.Action = actRestore
	for _, t := range targets {
		if entry.Before, err = r.present(ctx, t.Role, entry.Before); err != nil {
			return err
		}
	}
	entry.After = encoded(targets)
	err = r.store.Restore(ctx, targets, *entry)
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
		return cannotUndo(err.Error(), "move what is in its place out of the way first")
	}
	return err
}

// undoRestore archives what the act brought back: what is there of its roles now, but for what was there before it.
func (r *Runtime) undoRestore(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	targets, err := targetsOf(was.After, was)
	if err != nil {
		return err
	}
	var before []store.Target
	if was.Before != nil && json.Unmarshal(was.Before, &before) != nil {
		return cannotUndo("the entry does not say what was there before", was.Undo)
	}
	var now json.RawMessage
	for _, t := range targets {
		if now, err = r.present(ctx, t.Role, now); err != nil {
			return err
		}
	}
	if targets, err = targetsOf(now, was); err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t store.Target) bool { return slices.Contains(before, t) })
	entry.Action, entry.After = actArchive, encoded(targets)
	return r.store.Archive(ctx, targets, *entry)
}

// present adds to the list what there is of the role: each artifact, and the tool.
func (r *Runtime) present(ctx context.Context, role string, list json.RawMessage) (json.RawMessage, error) {
	var out []store.Target
	_ = json.Unmarshal(list, &out) // our own, or nothing yet
	if slices.ContainsFunc(out, func(t store.Target) bool { return t.Role == role }) {
		return list, nil
	}
	artifacts, err := r.store.ListArtifacts(ctx, role)
	if err != nil {
		return nil, err
	}
	for _, a := range artifacts {
		out = append(out, store.Target{Role: role, Method: a.MethodName})
	}
	if _, err := r.store.Tool(ctx, role); err == nil {
		out = append(out, store.Target{Role: role, ToolOnly: true})
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if len(out) == 0 {
		return nil, nil
	}
	return encoded(out), nil
}

func targetsOf(list json.RawMessage, was agent.AuditEntry) ([]store.Target, error) {
	var targets []store.Target
	if json.Unmarshal(list, &targets) != nil || len(targets) == 0 {
		return nil, cannotUndo("the entry does not say what was moved", orElse(was.Undo, "POST /v1/maintenance/restore"))
	}
	return targets, nil
}

// undoOperation takes back an act on one artifact. A program put where there was none goes to the archive.
func (r *Runtime) undoOperation(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	var from, to agent.Standing
	if json.Unmarshal(was.After, &from) != nil || from.Role == "" {
		return cannotUndo("the entry is of an older kind, which does not hold what is needed", was.Undo)
	}
	if was.Before == nil {
		target := []store.Target{{Role: from.Role, Method: from.MethodName}}
		entry.Action, entry.After = actArchive, encoded(target)
		return r.store.Archive(ctx, target, *entry)
	}
	if json.Unmarshal(was.Before, &to) != nil {
		return cannotUndo("the entry does not hold what was before", was.Undo)
	}
	entry.Action = actUndo
	unlock := r.adoption.lock(methodKey{from.Role, from.MethodName}) // no candidate slips in
	defer unlock()
	revert := &agent.Revert{From: from, To: to}
	_, err := r.change(ctx, from.Role, from.MethodName, entry, func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			return agent.ArtifactChange{}, store.ErrNotFound
		}
		if why := revert.Hinders(a); why != "" {
			return agent.ArtifactChange{}, cannotUndo(why, "GET "+toolPath(from.Role, from.MethodName)+"/generations shows what there is")
		}
		return agent.ArtifactChange{Revert: revert}, nil
	})
	return err
}

// change makes one act on an artifact and tells the audit trail how the artifact stood before and after it. decide is asked for
// the act on the artifact as it is, nil where there is none, again when a call changed it meanwhile.
func (r *Runtime) change(ctx context.Context, role, method string, entry *agent.AuditEntry, decide func(a *agent.Artifact) (agent.ArtifactChange, error)) (*agent.Artifact, error) {
	const most = 1000 // busy artifacts change with every call
	for range most {
		a, err := r.store.Artifact(ctx, role, method)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		change, err := decide(a)
		if err != nil {
			return nil, err
		}
		change.Role, change.MethodName, change.At = role, method, r.o.Now()
		revision := int64(0)
		entry.Before = nil
		if a != nil {
			revision, entry.Before = a.Revision, encoded(a.Standing())
		}
		entry.After = encoded(a.Apply(change).Standing())
		next, err := r.store.ChangeArtifact(ctx, revision, change, entry)
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
	}
	return nil, store.ErrConflict
}

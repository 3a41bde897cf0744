package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// undoToolPut puts the contract back that was before, or takes away a tool that was not there.
func (o *Operator) undoToolPut(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	now, err := o.store.Tool(ctx, was.Target)
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
		entry.Action, entry.After = opToolArchive, agent.Encoded(target)
		return o.store.Archive(ctx, target, *entry)
	}
	var old agent.Tool
	if err := json.Unmarshal(was.Before, &old); err != nil {
		return cannotUndo("the entry does not hold what was before", "")
	}
	next := now
	next.Contract, next.Methods, next.ByPerson = old.Contract, old.Methods, old.ByPerson
	entry.Before, entry.After = agent.Encoded(now), agent.Encoded(next)
	_, err = o.store.PutTool(ctx, next, now.Revision, entry)
	return err
}

// sameTerms reports whether two versions of a tool have the same contracts.
func sameTerms(a, b agent.Tool) bool {
	terms := func(t agent.Tool) json.RawMessage {
		return agent.Encoded(agent.Tool{Role: t.Role, Contract: t.Contract, Methods: t.Methods})
	}
	return bytes.Equal(terms(a), terms(b))
}

// undoArchive restores what the operation moved, and nothing that was archived before it.
func (o *Operator) undoArchive(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
	targets, err := targetsOf(was.After, was)
	if err != nil {
		return err
	}
	for i := range targets {
		targets[i].ToolOnly = targets[i].Method == "" // its artifacts are named beside it
	}
	entry.Action = opRestore
	for _, t := range targets {
		if entry.Before, err = o.present(ctx, t.Role, entry.Before); err != nil {
			return err
		}
	}
	entry.After = agent.Encoded(targets)
	err = o.store.Restore(ctx, targets, *entry)
	if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
		return cannotUndo(err.Error(), "move what is in its place out of the way first")
	}
	return err
}

// undoRestore archives what the operation restored: the tools and artifacts of its roles that exist now, except for those that
// existed before the operation or were made after it.
func (o *Operator) undoRestore(ctx context.Context, was agent.AuditEntry, entry *agent.AuditEntry) error {
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
		if now, err = o.present(ctx, t.Role, now); err != nil {
			return err
		}
	}
	if targets, err = targetsOf(now, was); err != nil {
		return err
	}
	targets = slices.DeleteFunc(targets, func(t store.Target) bool { return slices.Contains(before, t) || o.cameAfter(ctx, t, was) })
	if len(targets) == 0 {
		return cannotUndo("what it restored is not there any more", "GET /v1/maintenance/audit shows what came after it")
	}
	entry.Action, entry.After = opArchive, agent.Encoded(targets)
	return o.store.Archive(ctx, targets, *entry)
}

// cameAfter reports whether the program, or the tool, was made after the operation.
func (o *Operator) cameAfter(ctx context.Context, t store.Target, was agent.AuditEntry) bool {
	at, err := time.Parse(agent.TimeFormat, was.Timestamp)
	if err != nil {
		return false
	}
	if t.Method == "" {
		tool, err := o.store.Tool(ctx, t.Role)
		return err == nil && tool.CreatedAt.Truncate(time.Millisecond).After(at)
	}
	a, err := o.store.Artifact(ctx, t.Role, t.Method)
	return err == nil && a.CreatedAt.Truncate(time.Millisecond).After(at)
}

// present adds to the list what there is of the role: each artifact, and the tool.
func (o *Operator) present(ctx context.Context, role string, list json.RawMessage) (json.RawMessage, error) {
	var out []store.Target
	_ = json.Unmarshal(list, &out) // our own, or nothing yet
	if slices.ContainsFunc(out, func(t store.Target) bool { return t.Role == role }) {
		return list, nil
	}
	artifacts, err := o.store.ListArtifacts(ctx, role)
	if err != nil {
		return nil, err
	}
	for _, a := range artifacts {
		out = append(out, store.Target{Role: role, Method: a.MethodName})
	}
	if _, err := o.store.Tool(ctx, role); err == nil {
		out = append(out, store.Target{Role: role, ToolOnly: true})
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if len(out) == 0 {
		return nil, nil
	}
	return agent.Encoded(out), nil
}

func targetsOf(list json.RawMessage, was agent.AuditEntry) ([]store.Target, error) {
	var targets []store.Target
	if json.Unmarshal(list, &targets) != nil || len(targets) == 0 {
		return nil, cannotUndo("the entry does not say what was moved", cmp.Or(was.Undo, "POST /v1/maintenance/restore"))
	}
	return targets, nil
}

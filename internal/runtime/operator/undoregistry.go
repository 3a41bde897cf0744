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
	"github.com/recurgentd/recurgentd/internal/contract"
	"github.com/recurgentd/recurgentd/internal/store"
)

// undoToolPut restores the previous contract, or archives a tool that did not exist before.
func (o *Operator) undoToolPut(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	now, err := o.store.Tool(ctx, was.Target)
	if errors.Is(err, store.ErrNotFound) {
		return nil, cannotUndo("the tool no longer exists", "")
	}
	if err != nil {
		return nil, err
	}
	var put agent.Tool
	if json.Unmarshal(was.After, &put) != nil || !sameTerms(put, now) {
		return nil, cannotUndo("its contract was changed again since",
			"undo the later change first, or PUT the previous contract")
	}
	// the tool did not exist before, so the undo archives it without its artifacts
	if was.Before == nil {
		target := []store.Target{{Role: was.Target, ToolOnly: true}}
		entry.Action, entry.After = opToolArchive, agent.Encoded(target)
		return func() error { return o.take(ctx, target, *entry, o.store.Archive) }, nil
	}
	var old agent.Tool
	if err := json.Unmarshal(was.Before, &old); err != nil {
		return nil, cannotUndo("the entry does not contain the state before it", "")
	}
	next := now
	next.Contract, next.Methods, next.ByPerson, next.ByUse, next.Owner = old.Contract, old.Methods, old.ByPerson,
		old.ByUse, old.Owner
	next.Proposals = contract.StillStricter(now.Proposals, next.Deliverable)
	entry.Before, entry.After = auditedTool(now), auditedTool(next)
	return func() error {
		if err := o.remember(ctx, &now, &next); err != nil {
			return err
		}
		_, err := o.store.PutTool(ctx, next, now.Revision, entry)
		return err
	}, nil
}

// sameTerms reports whether two versions of a tool have the same contracts.
func sameTerms(a, b agent.Tool) bool {
	terms := func(t agent.Tool) json.RawMessage {
		return agent.Encoded(agent.Tool{Role: t.Role, Contract: t.Contract, Methods: t.Methods})
	}
	return bytes.Equal(terms(a), terms(b))
}

// maxLooked is how many targets of an operation planUndo checks, which bounds the cost of a page of the audit trail.
// The commit checks the others.
const maxLooked = 20

// undoArchive restores what the operation archived, but not what was archived before. A program that has a newer one is
// restored below it. A newer tool stays in place.
func (o *Operator) undoArchive(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	targets, err := targetsOf(was.After, was)
	if err != nil {
		return nil, err
	}
	refused := cannotUndo("what it archived was restored since, and removed again",
		"undo the operation that last removed it")
	for i, t := range targets {
		if !t.Until.IsZero() && !o.o.Now().Before(t.Until) {
			refused = cannotUndo("it deleted this more than a day ago: it is gone for good", "")
		}
		// the artifacts of a tool are targets of their own
		targets[i] = store.Target{Role: t.Role, Method: t.Method, ToolOnly: t.Method == "", From: t.From}
	}
	// only to decide now; the commit checks all targets
	looked := targets[:min(len(targets), maxLooked)]
	if err := o.store.Archived(ctx, looked, was.ID); errors.Is(err, store.ErrNotFound) {
		return nil, refused
	} else if err != nil {
		return nil, err
	}
	if _, err := o.withoutNewer(ctx, looked, was.ID); err != nil && len(looked) == len(targets) {
		return nil, err
	}
	return func() error {
		if err := o.roomToRestore(ctx, entry.Actor); err != nil {
			return err
		}
		back, err := o.withoutNewer(ctx, targets, was.ID)
		if err != nil {
			return err
		}
		entry.Action, entry.After = opRestore, agent.Encoded(back)
		for _, t := range back {
			if entry.Before, err = o.present(ctx, t.Role, entry.Before); err != nil {
				return err
			}
		}
		err = o.store.Restore(ctx, back, *entry)
		if errors.Is(err, store.ErrExists) || errors.Is(err, store.ErrNotFound) {
			return cannotUndo(err.Error(), "archive what is in its place first")
		}
		return err
	}, nil
}

// withoutNewer removes from targets the tools that have newer versions, which stay archived, and the programs that were
// restored below newer ones already. It returns an error if nothing is left.
func (o *Operator) withoutNewer(ctx context.Context, targets []store.Target,
	auditID string) (left []store.Target, err error) {
	refused := cannotUndo("there is another "+targets[0].String()+" now",
		"archive what is in its place first")
	for _, t := range targets {
		if t.ToolOnly {
			if _, err = o.store.Tool(ctx, t.Role); err == nil {
				continue
			}
		} else if a, gone := o.store.Artifact(ctx, t.Role, t.Method); gone == nil {
			back := slices.IndexFunc(a.Generations, func(g *agent.Generation) bool {
				return g.Restored != nil && g.Restored.From == cmp.Or(t.From, auditID)
			})
			if back >= 0 {
				refused = cannotUndo("its program is back already, as "+a.Generations[back].ID+" of "+t.String(), "")
				continue
			}
		} else {
			err = gone
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		left = append(left, t)
	}
	if len(left) == 0 {
		return nil, refused
	}
	return left, nil
}

// undoRestore archives what the operation restored: the tools and artifacts of its roles, except for those that existed
// before the operation or were made after it. Of a program that was restored below a newer one, only that generation is
// archived.
func (o *Operator) undoRestore(ctx context.Context, was agent.AuditEntry,
	entry *agent.AuditEntry) (commit func() error, err error) {
	targets, err := targetsOf(was.After, was)
	if err != nil {
		return nil, err
	}
	var before []store.Target
	if was.Before != nil && json.Unmarshal(was.Before, &before) != nil {
		return nil, cannotUndo("the entry does not contain the state before it", was.Undo)
	}
	restored := func(targets []store.Target) ([]store.Target, error) {
		var now json.RawMessage
		for _, t := range targets {
			var err error
			if now, err = o.present(ctx, t.Role, now); err != nil {
				return nil, err
			}
		}
		left, err := targetsOf(now, was)
		if err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(t store.Target) bool {
			if err != nil || slices.Contains(before, t) {
				return true
			}
			var after bool
			after, err = o.cameAfter(ctx, t, was)
			return after
		})
		if err != nil {
			return nil, err
		}
		below, err := o.takeBelow(ctx, targets, was.ID)
		if err != nil {
			return nil, err
		}
		if left = append(left, below...); len(left) == 0 {
			return nil, cannotUndo("what it restored no longer exists",
				"GET /v1/maintenance/audit shows what came after it")
		}
		return left, nil
	}
	if _, err := restored(targets[:min(len(targets), maxLooked)]); err != nil && len(targets) <= maxLooked {
		return nil, err
	}
	return func() error {
		left, err := restored(targets)
		if err != nil {
			return err
		}
		entry.Action, entry.After = opArchive, agent.Encoded(left)
		return o.take(ctx, left, *entry, o.store.Archive)
	}, nil
}

// takeBelow returns what the operation restored below newer programs. It is an error if one of these answers now.
func (o *Operator) takeBelow(ctx context.Context, targets []store.Target,
	auditID string) (out []store.Target, err error) {
	looked := map[string]bool{}
	for _, t := range targets {
		if looked[t.Role] {
			continue
		}
		looked[t.Role] = true
		below, err := o.restoredBelow(ctx, t.Role, auditID)
		if err != nil {
			return nil, err
		}
		for _, x := range below {
			if x.artifact.Answers(x.generation) {
				return nil, cannotUndo(x.generation.ID+" of "+x.artifact.String()+
					", which it brought back, answers now", "roll back to another generation first")
			}
			out = append(out, store.Target{Role: x.artifact.Role, Method: x.artifact.MethodName,
				From: x.generation.Restored.From, Restored: auditID})
		}
	}
	return out, nil
}

// cameAfter reports whether the artifact or the tool was made after the operation. It reports false if it is gone.
func (o *Operator) cameAfter(ctx context.Context, t store.Target, was agent.AuditEntry) (bool, error) {
	at, err := time.Parse(agent.TimeFormat, was.Timestamp)
	if err != nil {
		return false, nil //nolint:nilerr // an entry without a time precedes nothing
	}
	var made time.Time
	if t.Method == "" {
		var tool agent.Tool
		tool, err = o.store.Tool(ctx, t.Role)
		made = tool.CreatedAt
	} else if a, missing := o.store.Artifact(ctx, t.Role, t.Method); missing == nil {
		made = a.CreatedAt
	} else {
		err = missing
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	return err == nil && made.Truncate(time.Millisecond).After(at), nil
}

// present adds the role's artifacts and its tool, as far as they exist, to a list of targets.
func (o *Operator) present(ctx context.Context, role string, list json.RawMessage) (json.RawMessage, error) {
	var out []store.Target
	_ = json.Unmarshal(list, &out) // the list is empty or was encoded here
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

// targetsOf parses the targets of an audit entry.
func targetsOf(list json.RawMessage, was agent.AuditEntry) ([]store.Target, error) {
	var targets []store.Target
	if json.Unmarshal(list, &targets) != nil || len(targets) == 0 {
		return nil, cannotUndo("the entry does not list what was moved",
			cmp.Or(was.Undo, "POST /v1/maintenance/restore"))
	}
	return targets, nil
}

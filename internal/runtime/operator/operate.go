package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/overview"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// A KnownTool is a registry entry with its rank among the tools that prompts show.
type KnownTool struct {
	agent.Tool
	// success rate times recency, 0 to 1, rounded to four digits
	Score          float64 `json:"score"`
	LifecycleState string  `json:"lifecycle_state,omitempty"` // most mature state of its programs; "" without a program

	Health *overview.Health `json:"health,omitempty"` // of its programs
	// of the last 30 days; only in lists, for readers who may see everyone's spending
	Usage *spend.UsageRow `json:"usage,omitempty"`
}

// Tool returns a registry entry. For a role that is not registered but has artifacts, it returns an implied one;
// otherwise store.ErrNotFound.
func (o *Operator) Tool(ctx context.Context, role string) (KnownTool, error) {
	t, missing := o.store.RankedTool(ctx, role, o.o.Now())
	if missing != nil && !errors.Is(missing, store.ErrNotFound) {
		return KnownTool{}, missing
	}
	all, err := o.store.ListArtifacts(ctx, role)
	if err != nil {
		return KnownTool{}, err
	}
	if missing != nil {
		implied := agent.Implied(all)
		if implied == nil {
			return KnownTool{}, missing
		}
		t = store.RankedTool{Tool: *implied}
	}
	known := knownTool(t)
	known.Health = overview.HealthOf(all, func(a *agent.Artifact) bool { return o.stale(&known.Tool, a) != "" })
	return known, nil
}

// ByPerson reports whether a person registered the role. It reports false if the store cannot be read.
func (o *Operator) ByPerson(ctx context.Context, role string) bool {
	t, err := o.store.Tool(ctx, role)
	return err == nil && t.ByPerson
}

// FindTools returns a page of registry entries, and the cursor of the next page, or "".
func (o *Operator) FindTools(ctx context.Context, q overview.Query) (tools []KnownTool, next string, err error) {
	page, next, err := o.overview.Tools(ctx, q)
	if err != nil {
		return nil, "", err
	}
	tools = make([]KnownTool, 0, len(page))
	for _, t := range page {
		ranked, err := o.store.RankedTool(ctx, t.Role, o.o.Now())
		if err != nil && !errors.Is(err, store.ErrNotFound) { // it may have been archived meanwhile
			return nil, "", err
		}
		ranked.Tool = t.Tool
		known := knownTool(ranked)
		known.Health, known.Usage = t.Health, t.Usage
		tools = append(tools, known)
	}
	return tools, next, nil
}

// ListTools returns up to limit registry entries, by role, with roles greater than after.
func (o *Operator) ListTools(ctx context.Context, after string, limit int) ([]KnownTool, error) {
	tools, err := o.store.ListTools(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	out := make([]KnownTool, 0, len(tools))
	for _, t := range tools {
		ranked, err := o.store.RankedTool(ctx, t.Role, o.o.Now())
		if errors.Is(err, store.ErrNotFound) { // it was archived meanwhile
			ranked = store.RankedTool{Tool: t}
		} else if err != nil {
			return nil, err
		}
		out = append(out, knownTool(ranked))
	}
	return out, nil
}

// knownTool converts a ranked tool for readers.
func knownTool(t store.RankedTool) KnownTool {
	const digits = 1e4
	t.Tool.Proposals = nil // shown in the inbox
	return KnownTool{Tool: t.Tool, Score: math.Round(t.Score*digits) / digits, LifecycleState: t.State}
}

// Artifact returns the artifact, or store.ErrNotFound.
func (o *Operator) Artifact(ctx context.Context, role, method string) (*agent.Artifact, error) {
	return o.store.Artifact(ctx, role, method)
}

// ListArtifacts returns the role's artifacts, sorted by method.
func (o *Operator) ListArtifacts(ctx context.Context, role string) ([]*agent.Artifact, error) {
	return o.store.ListArtifacts(ctx, role)
}

// ArchiveTool archives the tool and all its artifacts; Restore brings them back. If the role has neither, it does
// nothing and writes no audit entry.
func (o *Operator) ArchiveTool(ctx context.Context, role, reason, actor string) error {
	entry := o.audit(actor, opToolArchive, role, reason)
	t, err := o.store.Tool(ctx, role)
	if err == nil {
		entry.Before = agent.Encoded(t)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if entry.After, err = o.present(ctx, role, nil); err != nil || entry.After == nil {
		return err
	}
	return o.take(ctx, []store.Target{{Role: role}}, entry, o.store.Archive)
}

// ArchiveArtifact archives one artifact. If there is none, it does nothing and writes no audit entry.
func (o *Operator) ArchiveArtifact(ctx context.Context, role, method, reason, actor string) error {
	entry := o.audit(actor, opArchive, role+"."+method, reason)
	a, err := o.store.Artifact(ctx, role, method)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	entry.Before = agent.Encoded(a.Standing())
	targets := []store.Target{{Role: role, Method: method}}
	entry.After = agent.Encoded(targets)
	return o.take(ctx, targets, entry, o.store.Archive)
}

// Operation is an operator's action on an artifact. Action is quarantine, release, regenerate, promote, rollback, pin,
// unpin or approve.
type Operation struct {
	Action, Reason, Actor string
	// for rollback: the target, "" is the parent of the current one; for approve: "" is the current one
	Generation   string
	ResetMetrics bool // for promote
}

// Operate performs the operation and returns the resulting artifact. It returns an *agent.InputError for an invalid
// operation, and store.ErrNotFound if there is no artifact.
func (o *Operator) Operate(ctx context.Context, role, method string, op Operation) (*agent.Artifact, error) {
	unlock := o.calls.HoldAdoption(role, method) // no candidate is adopted between decision and change
	defer unlock()
	op.Reason = o.mask(op.Reason)
	entry := o.audit(op.Actor, onArtifacts+op.Action, role+"."+method, op.Reason)
	a, err := o.change(ctx, role, method, &entry, func(a *agent.Artifact) (agent.ArtifactChange, error) {
		if a == nil {
			return agent.ArtifactChange{}, store.ErrNotFound
		}
		change, err := op.on(a)
		if err == nil {
			err = o.stands(ctx, a, &change)
		}
		return change, err
	})
	if err == nil {
		o.correct(a, op.Actor)
	}
	return a, err
}

// correct starts a pending correction at once, if the policy wants that. tried is closed when the attempt has ended,
// and nil if none was started.
func (o *Operator) correct(a *agent.Artifact, actor string) (tried <-chan struct{}) {
	if !a.Correction.Pending() || len(a.Corrections()) == 0 || o.calls.Policy().Correction != agent.CorrectBackground {
		return nil
	}
	return o.calls.Corrections.Correct(a.Role, a.MethodName, actor)
}

// on returns the change that the operation makes to the artifact.
func (o *Operation) on(a *agent.Artifact) (change agent.ArtifactChange, err error) {
	yes, no := true, false
	switch o.Action {
	case "quarantine":
		change.Quarantine = &o.Reason
	case "release":
		change.Release = true
	case "regenerate":
		reason := cmp.Or(o.Reason, forge.RegenerateRequested)
		// a new program gets the full number of repairs
		change.ForceRegenerate, change.ResetRepairs = &reason, true
	case "promote":
		change.State, change.Bless, change.ResetMetrics = agent.StateDurable, true, o.ResetMetrics
	case "rollback":
		change.Current, err = rollbackTarget(a, o.Generation)
	case "pin":
		change.Pin = &yes
	case "unpin":
		change.Pin = &no
	case "approve":
		change.Approve, change.ApproveOf = &yes, o.Generation
		err = o.approves(a, &change)
	default:
		err = &agent.InputError{Code: "invalid_operation", Detail: "unknown operation " + o.Action,
			Hint: "quarantine, release, regenerate, promote, rollback, pin, unpin or approve"}
	}
	return change, err
}

// approves checks that the generation is kept, and completes a correction that waited for its approval.
func (o *Operation) approves(a *agent.Artifact, change *agent.ArtifactChange) error {
	id := cmp.Or(o.Generation, a.CurrentID)
	if a.Find(id) == nil {
		return &agent.InputError{Code: "invalid_generation", Pointer: "/generation",
			Detail: fmt.Sprintf("%s is not kept", id), Hint: "GET .../generations lists those that are kept"}
	}
	if awaits(a, id) {
		change.Correction = adopted(a.Correction)
	}
	return nil
}

// awaits reports whether a correction waits for the approval of the generation.
func awaits(a *agent.Artifact, generation string) bool {
	c := a.Correction
	return c != nil && c.State == agent.CorrectionAwaitingApproval && c.Generation != nil && *c.Generation == generation
}

// adopted returns a copy of the correction in the state adopted.
func adopted(c *agent.Correction) *agent.Correction {
	done := *c
	done.State = agent.CorrectionAdopted
	return &done
}

// rollbackTarget returns the wanted generation, or the parent of the current one, if it is kept.
func rollbackTarget(a *agent.Artifact, want string) (string, error) {
	refuse := func(detail string) (string, error) {
		return "", &agent.InputError{Code: "invalid_generation", Pointer: "/generation", Detail: detail,
			Hint: "GET .../generations lists those that are kept"}
	}
	if want != "" {
		if a.Find(want) == nil {
			return refuse(fmt.Sprintf("%s is not kept", want))
		}
		return want, nil
	}
	if cur := a.Current(); cur != nil && cur.ParentID != nil && a.Find(*cur.ParentID) != nil {
		return *cur.ParentID, nil
	}
	return refuse("there is no earlier generation to go back to")
}

// Stale lists the tools and artifacts that were not used for that many days.
func (o *Operator) Stale(ctx context.Context, days int) ([]store.Target, error) {
	return o.store.Stale(ctx, o.o.Now().Add(-time.Duration(days)*24*time.Hour))
}

// Audit returns entries of the audit trail, newest first.
func (o *Operator) Audit(ctx context.Context, q store.AuditQuery) ([]agent.AuditEntry, error) {
	return o.store.Audit(ctx, q)
}

// AuditHead returns the head of the audit chain.
func (o *Operator) AuditHead(ctx context.Context) (chain.Head, error) { return o.store.AuditHead(ctx) }

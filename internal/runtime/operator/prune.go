package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// PruneRequest asks to archive or delete what was unused for StaleDays.
type PruneRequest struct {
	StaleDays     int    // for delete, at least agent.MinDeleteDays
	Mode          string // archive or delete
	DryRun        bool
	Actor, Reason string
}

// PruneReport lists what was pruned or, in a dry run, would be.
type PruneReport struct {
	DryRun  bool           `json:"dry_run"`
	Mode    string         `json:"mode"`
	Targets []store.Target `json:"targets"`
}

// Prune archives or deletes stale tools and artifacts. A dry run changes nothing. Deleted ones can be restored for
// store.DeletedLife.
func (o *Operator) Prune(ctx context.Context, q PruneRequest) (PruneReport, error) {
	report := PruneReport{DryRun: q.DryRun, Mode: q.Mode}
	if q.Mode != "archive" && q.Mode != "delete" {
		return report, &agent.InputError{Code: "invalid_mode", Pointer: "/mode", Detail: "must be archive or delete",
			Hint: "archive can be undone"}
	}
	if q.Mode == "delete" && q.StaleDays < agent.MinDeleteDays {
		return report, &agent.InputError{Code: "invalid_stale_days", Pointer: "/stale_days",
			Detail: fmt.Sprintf("must be at least %d with the mode delete, got %d", agent.MinDeleteDays, q.StaleDays),
			Hint:   "say for how many days it must have been idle, or take the mode archive, for which 0 will do"}
	}
	targets, err := o.Stale(ctx, q.StaleDays)
	if err != nil || q.DryRun || len(targets) == 0 {
		report.Targets = targets
		return report, err
	}
	report.Targets = targets
	entry := o.audit(q.Actor, opPrune, fmt.Sprintf("%d targets", len(targets)), q.Reason)
	take := o.store.Archive
	if q.Mode == "delete" {
		take = o.store.Remove
		for i := range targets {
			// the audit entry shows until when an undo is possible
			targets[i].Until = o.o.Now().Add(store.DeletedLife).UTC()
		}
	}
	entry.After = agent.Encoded(targets)
	return report, o.take(ctx, targets, entry, take)
}

// RestoreReport is the result of a restore.
type RestoreReport struct {
	Restored         store.Target      `json:"restored"`
	OlderGenerations []OlderGeneration `json:"older_generations,omitempty"`
	BroughtBack
}

// OlderGeneration is a program that was restored below a newer one, which still answers.
type OlderGeneration struct {
	Role       string `json:"role"`
	Method     string `json:"method"`
	Generation string `json:"generation"`
}

// Restore brings back what was archived or, within store.DeletedLife, deleted. It is restored byte for byte or, if a
// newer program has the name, below that program, which still answers.
func (o *Operator) Restore(ctx context.Context, t store.Target, actor,
	reason string) (report RestoreReport, err error) {
	report.Restored = t
	report.BroughtBack, err = o.bringingBack(ctx, []string{t.Role}, actor, func() error {
		report.OlderGenerations, err = o.restore(ctx, t, actor, reason)
		return err
	})
	return report, err
}

// restore returns what was restored below a newer program.
func (o *Operator) restore(ctx context.Context, t store.Target, actor, reason string) ([]OlderGeneration, error) {
	err := o.roomToRestore(ctx, actor)
	if err != nil {
		return nil, err
	}
	entry := o.audit(actor, opRestore, t.String(), reason)
	if entry.Before, err = o.present(ctx, t.Role, nil); err != nil {
		return nil, err
	}
	entry.After = agent.Encoded([]store.Target{t})
	err = o.store.Restore(ctx, []store.Target{t}, entry)
	if errors.Is(err, store.ErrExists) {
		return nil, &agent.InputError{Code: "already_exists", Detail: err.Error(),
			Hint: "archive what is in its place, and all of it comes back"}
	}
	if err != nil {
		return nil, err
	}
	below, err := o.restoredBelow(ctx, t.Role, entry.ID)
	out := make([]OlderGeneration, 0, len(below))
	for _, x := range below {
		out = append(out, OlderGeneration{x.artifact.Role, x.artifact.MethodName, x.generation.ID})
	}
	return out, err
}

// broughtBelow is a generation that was restored below a newer program.
type broughtBelow struct {
	artifact   *agent.Artifact
	generation *agent.Generation
}

// restoredBelow lists what the operation restored below newer programs of the role, as far as it is still kept.
func (o *Operator) restoredBelow(ctx context.Context, role, auditID string) (out []broughtBelow, err error) {
	all, err := o.store.ListArtifacts(ctx, role)
	for _, a := range all {
		if g := a.RestoredBy(auditID); g != nil {
			out = append(out, broughtBelow{a, g})
		}
	}
	return out, err
}

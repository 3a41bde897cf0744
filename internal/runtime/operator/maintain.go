package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maintainer is the actor of the daemon's own operations. scheduledRun is the action that records a scheduled run in
// the audit trail, so the schedule continues over restarts.
const (
	maintainer   = "recurgentd"
	scheduledRun = "maintenance.scheduled"
	expireEvery  = time.Hour
	expireSeldom = 24 * time.Hour // while a correction is pending: see expireDue
)

// upkeep is when maintenance last ran. The zero value is ready.
type upkeep struct {
	mu      sync.Mutex // held during maintenance
	expired time.Time
	pruned  time.Time // as far as this replica knows; the audit trail also has earlier runs, and those of others
}

// Maintain does what is due: it applies the policy's retention every hour, and prunes by the policy's schedule, which
// is off by default. It returns when the schedule is due next, or zero if it is off. Errors are logged, and retried
// when it is due again.
func (o *Operator) Maintain(ctx context.Context) (next time.Time) {
	u := &o.upkeep
	u.mu.Lock()
	defer u.mu.Unlock()
	now := o.o.Now()
	if o.expireDue(now) {
		u.expired = now
		if n, err := o.store.Expire(ctx, now); err != nil {
			o.o.Logger.Warn().Err(err).Msg("retention could not be applied")
		} else if n > 0 {
			o.o.Logger.Info().Int("sessions", n).Msg("sessions expired")
			o.noteExpired(ctx, n)
		}
	}
	m := o.calls.Policy().Maintenance
	if m.IntervalHours == 0 {
		return time.Time{}
	}
	interval := time.Duration(m.IntervalHours) * time.Hour
	due := func() bool { return now.Sub(u.pruned) >= interval }
	if due() { // before asking the audit trail
		if last := o.lastScheduled(ctx); last.After(u.pruned) {
			u.pruned = last
		}
	}
	if due() {
		u.pruned = now
		o.pruneBySchedule(ctx, m)
	}
	return u.pruned.Add(interval)
}

// noteExpired records in the audit trail that retention deleted sessions.
func (o *Operator) noteExpired(ctx context.Context, sessions int) {
	entry := o.audit(maintainer, opExpire, "sessions", "the policy's retention")
	entry.After = agent.Encoded(struct {
		Deleted int `json:"deleted"`
	}{sessions})
	if err := o.store.AppendAudit(ctx, entry); err != nil {
		o.o.Logger.Warn().Err(err).Msg("the audit trail lacks that sessions expired")
	}
}

// expireDue reports whether retention must be applied now. While a correction is pending it is applied less often.
// After retention a namespace counts as idle to the store, so after a restart nothing would open it to resume the
// correction.
func (o *Operator) expireDue(now time.Time) bool {
	every := expireEvery
	if o.calls.Corrections.Pending() {
		every = expireSeldom
	}
	return o.upkeep.expired.IsZero() || now.Sub(o.upkeep.expired) >= every
}

// pruneBySchedule prunes, and then records the run. After a crash in between, it prunes again.
func (o *Operator) pruneBySchedule(ctx context.Context, m agent.MaintenancePolicy) {
	report, err := o.Prune(ctx, PruneRequest{StaleDays: m.StaleDays, Mode: m.Mode, Actor: maintainer,
		Reason: "scheduled"})
	if err == nil {
		err = o.store.AppendAudit(ctx, o.audit(maintainer, scheduledRun, "maintenance", ""))
	}
	if err != nil {
		o.o.Logger.Warn().Err(err).Msg("scheduled maintenance failed")
		return
	}
	o.o.Logger.Info().Int("targets", len(report.Targets)).Str("mode", m.Mode).Msg("scheduled maintenance")
}

// lastScheduled returns when the schedule last ran, or zero if that is unknown.
func (o *Operator) lastScheduled(ctx context.Context) time.Time {
	entries, err := o.store.Audit(ctx, store.AuditQuery{Limit: 1, Actions: []string{scheduledRun}})
	if err != nil {
		return time.Time{}
	}
	for _, e := range entries { // newest first
		if e.Action == scheduledRun {
			t, err := time.Parse(agent.TimeFormat, e.Timestamp)
			if err != nil {
				return time.Time{}
			}
			return t
		}
	}
	return time.Time{}
}

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
			Hint:   "raise stale_days, or use the mode archive, which takes 0"}
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
			Hint: "archive what is in its place first"}
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

// linkTrees sets CorrectedBy of nested calls to the call in which the client asked their root again.
func (o *Operator) linkTrees(ctx context.Context, entries []agent.LogEntry) {
	by := map[string]string{} // by root
	for i := range entries {
		if e := &entries[i]; e.Depth == 0 {
			by[e.CallID] = e.CorrectedBy
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.RootCallID == "" || e.CorrectedBy != "" {
			continue
		}
		corrected, known := by[e.RootCallID]
		if !known {
			corrected = o.correctionOf(ctx, e.RootCallID)
			by[e.RootCallID] = corrected
		}
		e.CorrectedBy = corrected
	}
}

// correctionOf returns the id of the call in which the client asked the root call again, or "".
func (o *Operator) correctionOf(ctx context.Context, root string) string {
	got, err := o.store.Call(ctx, root)
	if err != nil {
		return "" // running, or dropped by retention
	}
	return got.Log.CorrectedBy
}

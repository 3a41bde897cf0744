package operator

import (
	"context"
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
	if o.calls.CorrectionsPending() {
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

package operator

import (
	"context"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// maintainer is the actor of what the daemon does by itself, and scheduledRun the action that marks a run in the audit
// trail, so that a schedule goes on over restarts.
const (
	maintainer   = "recurgentd"
	scheduledRun = "maintenance.scheduled"
	expireEvery  = time.Hour
	expireSeldom = 24 * time.Hour
)

// upkeep is when maintenance was last done.
type upkeep struct {
	mu      sync.Mutex // held while maintenance is done
	expired time.Time
	pruned  time.Time // as far as this replica knows: the trail has what it did before, and what others did
}

// Maintain does what is due by Options.Now: it applies the policy's retention, every hour, and prunes by the policy's schedule, which is off
// by default. It returns when the schedule is due next, zero where it is off.
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
	if due() { // as far as this replica knows
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

// noteExpired has the audit trail say that the policy's retention deleted sessions.
func (o *Operator) noteExpired(ctx context.Context, sessions int) {
	entry := o.audit(maintainer, opExpire, "sessions", "the policy's retention")
	entry.After = agent.Encoded(struct {
		Deleted int `json:"deleted"`
	}{sessions})
	if err := o.store.AppendAudit(ctx, entry); err != nil {
		o.o.Logger.Warn().Err(err).Msg("the audit trail lacks that sessions expired")
	}
}

// expireDue reports whether retention is to be applied now. While a correction waits it is applied less often: to the store a namespace that
// retention has just been applied to has nothing to do, and after a restart it would not be looked at until it has.
func (o *Operator) expireDue(now time.Time) bool {
	every := expireEvery
	if o.calls.CorrectionsPending() {
		every = expireSeldom
	}
	return o.upkeep.expired.IsZero() || now.Sub(o.upkeep.expired) >= every
}

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

// lastScheduled is when the schedule last ran, zero when that is unknown.
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

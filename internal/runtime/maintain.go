package runtime

import (
	"context"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// maintainer is the actor of what the daemon does by itself, and scheduledRun the action that marks a run in the audit
// trail, so that a schedule goes on over restarts.
const (
	maintainer   = "recurgentd"
	scheduledRun = "maintenance.scheduled"
	expireEvery  = time.Hour
)

// maintain applies the policy's retention every hour and prunes by the policy's schedule, which is off by default (P-67,
// P-97), until ctx ends. It reads the runtime's clock; the ticks only say when to look at it.
func (r *Runtime) maintain(ctx context.Context) {
	defer close(r.tended)
	tick := time.NewTicker(r.o.MaintenanceTick)
	defer tick.Stop()
	var expired time.Time
	pruned, known := time.Time{}, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := r.o.Now()
		if expired.IsZero() || now.Sub(expired) >= expireEvery {
			expired = now
			if n, err := r.store.Expire(ctx, now); err != nil {
				r.o.Logger.Warn().Err(err).Msg("retention could not be applied")
			} else if n > 0 {
				r.o.Logger.Info().Int("sessions", n).Msg("sessions expired")
			}
		}
		m := r.policy.Load().Maintenance
		if m.IntervalHours == 0 {
			continue
		}
		if !known {
			pruned, known = r.lastScheduled(ctx), true
		}
		if now.Sub(pruned) < time.Duration(m.IntervalHours)*time.Hour {
			continue
		}
		pruned = now
		r.pruneBySchedule(ctx, m)
	}
}

func (r *Runtime) pruneBySchedule(ctx context.Context, m agent.MaintenancePolicy) {
	report, err := r.Prune(ctx, PruneRequest{StaleDays: m.StaleDays, Mode: m.Mode, Actor: maintainer, Reason: "scheduled"})
	if err == nil {
		err = r.store.AppendAudit(ctx, r.audit(maintainer, scheduledRun, "maintenance", ""))
	}
	if err != nil {
		r.o.Logger.Warn().Err(err).Msg("scheduled maintenance failed")
		return
	}
	r.o.Logger.Info().Int("targets", len(report.Targets)).Str("mode", m.Mode).Msg("scheduled maintenance")
}

// lastScheduled is when the schedule last ran, zero when nothing tells.
func (r *Runtime) lastScheduled(ctx context.Context) time.Time {
	const back = 1000
	entries, err := r.store.Audit(ctx, "", back)
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

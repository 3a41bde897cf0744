package operator

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

// Maintain applies the policy's retention every hour and prunes by the policy's schedule, which is off by default, until
// ctx ends. It goes by Options.Now; ticks only say when to look at that clock. One goroutine runs it.
func (o *Operator) Maintain(ctx context.Context) {
	tick := time.NewTicker(o.o.MaintenanceTick)
	defer tick.Stop()
	var expired time.Time
	pruned, known := time.Time{}, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := o.o.Now()
		if expired.IsZero() || now.Sub(expired) >= expireEvery {
			expired = now
			if n, err := o.store.Expire(ctx, now); err != nil {
				o.o.Logger.Warn().Err(err).Msg("retention could not be applied")
			} else if n > 0 {
				o.o.Logger.Info().Int("sessions", n).Msg("sessions expired")
			}
		}
		m := o.calls.Policy().Maintenance
		if m.IntervalHours == 0 {
			continue
		}
		if !known {
			pruned, known = o.lastScheduled(ctx), true
		}
		if now.Sub(pruned) < time.Duration(m.IntervalHours)*time.Hour {
			continue
		}
		pruned = now
		o.pruneBySchedule(ctx, m)
	}
}

func (o *Operator) pruneBySchedule(ctx context.Context, m agent.MaintenancePolicy) {
	report, err := o.Prune(ctx, PruneRequest{StaleDays: m.StaleDays, Mode: m.Mode, Actor: maintainer, Reason: "scheduled"})
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
	const back = 1000
	entries, err := o.store.Audit(ctx, "", back)
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

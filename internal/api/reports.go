package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Reports are the reports that the interface needs from a runtime.
type Reports interface {
	HistoryUsage(ctx context.Context, since, until time.Time) (operator.HistoryUsage, error)
	Trends(ctx context.Context, window time.Duration) (operator.Trends, error)
	Usage(ctx context.Context, q spend.UsageQuery) (spend.UsageReport, error)
	// ListStored returns a page of owners with the bytes they store, in order of their names.
	ListStored(ctx context.Context, after string, limit int) ([]store.OwnerBytes, error)
	Stored(ctx context.Context, owner string) (store.OwnerBytes, error)
	// Nearly reports whether at least 80 percent of a cap that applies to the call is used, and how much.
	Nearly(owner, role, method string, daemon bool) (ratio float64, near bool)
}

// Bounds of the window of trends.
const (
	minWindow     = time.Minute
	maxWindow     = 90 * 24 * time.Hour
	defaultWindow = 24 * time.Hour
)

func (s *server) getHistoryUsage(w *reply, r *http.Request) error {
	q := readQuery(r)
	since, until := q.time("since"), q.time("until")
	if err := q.err(); err != nil {
		return err
	}
	report, err := w.run.HistoryUsage(r.Context(), since, until)
	if err != nil {
		return err
	}
	w.cutTypes(&report.ByAccess.With.ErrorTypes)
	w.cutTypes(&report.ByAccess.Without.ErrorTypes)
	return s.send(w, http.StatusOK, report)
}

// getTrends reports on the last window, 24 hours by default.
func (s *server) getTrends(w *reply, r *http.Request) error {
	q := readQuery(r)
	window := defaultWindow
	if v := q.text("window"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d < minWindow || d > maxWindow {
			q.bad("window", "must be a duration from 1m to 2160h, such as 24h")
		}
		window = d
	}
	if err := q.err(); err != nil {
		return err
	}
	t, err := w.run.Trends(r.Context(), window)
	if err != nil {
		return err
	}
	w.cutTypes(&t.Total.ErrorType)
	for i := range t.Buckets {
		w.cutTypes(&t.Buckets[i].ErrorType)
	}
	return s.send(w, http.StatusOK, t)
}

// getUsage reports token usage and stored bytes. Without the scope operate, a principal sees only its own.
func (s *server) getUsage(w *reply, r *http.Request) error {
	q := readQuery(r)
	u := spend.UsageQuery{By: q.oneOf("by", spend.ByRole, spend.ByMethod, spend.ByOwner, spend.ByDay),
		Since: q.time("since"), Until: q.time("until"),
		After: q.integer("after", 0, 0, store.MaxSpendRows), Limit: q.integer("limit", 0, 1, maxLimit)}
	ownersAfter := q.text("storage_after")
	if u.By == "" {
		u.By = spend.ByDay
	}
	if !u.Since.IsZero() && !u.Until.IsZero() && u.Until.Before(u.Since) {
		q.bad("until", "is before since")
	}
	if err := q.err(); err != nil {
		return err
	}
	if !w.who.Scopes.Has(access.Operate) {
		owner := w.owner
		u.Owner = &owner
	}
	// the daemon's own cap is for its operator only
	u.Daemon = w.who.Scopes.Has(access.Admin)
	report, err := w.run.Usage(r.Context(), u)
	if err != nil {
		return err
	}
	if report.Storage, report.StorageNext, err = storedBy(w, r, ownersAfter); err != nil {
		return err
	}
	return s.send(w, http.StatusOK, report)
}

// storedBy returns a page of what owners have stored. Without the scope operate it is the principal's own only.
func storedBy(w *reply, r *http.Request, after string) (list []store.OwnerBytes, next *string, err error) {
	if !w.who.Scopes.Has(access.Operate) {
		own, err := w.run.Stored(r.Context(), w.owner)
		return []store.OwnerBytes{own}, nil, err
	}
	list, err = w.run.ListStored(r.Context(), after, maxLimit+1)
	if len(list) > maxLimit {
		list = list[:maxLimit]
		next = &list[maxLimit-1].Owner
	}
	return append([]store.OwnerBytes{}, list...), next, err
}

// warnOfSpend sets a header with the used share of a cap, once 80 percent of a cap that applies to the call are used.
// The daemon's own cap is considered for admins only.
func (s *server) warnOfSpend(w *reply, role, method string) {
	if ratio, near := w.run.Nearly(w.owner, role, method, w.who.Scopes.Has(access.Admin)); near {
		w.Header().Set("Recurgent-Spend", strconv.FormatFloat(ratio, 'f', 2, 64))
	}
}

// overCap adds the details of the cap that kept a prediction from asking the model.
func overCap(p *Problem, l *spend.Limit) *Problem {
	p.Meta["scope"], p.Meta["window"], p.Meta["limit"], p.Meta["used"], p.Meta["resets_at"] = l.Scope, l.Window,
		l.Limit, l.Used, l.ResetsAt
	p.retry = strconv.Itoa(max(1, int(time.Until(l.ResetsAt).Seconds())))
	return p
}

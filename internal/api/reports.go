package api

import (
	"context"
	"net/http"
	"time"

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

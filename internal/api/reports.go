package api

import (
	"net/http"
	"time"
)

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
	return s.send(w, http.StatusOK, t)
}

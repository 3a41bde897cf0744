package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Model is when requests to the model ended last; zero where none did.
type Model struct{ LastOK, LastFailed time.Time }

func newModelFigure() *prometheus.Desc {
	return prometheus.NewDesc("recurgent_model_last_request_timestamp_seconds", "When a request to the daemon's model ended last, by how, in seconds since 1970; 0 where none did.", []string{"outcome"}, nil)
}

// collectModel sends the figures. read may be nil.
func collectModel(ch chan<- prometheus.Metric, d *prometheus.Desc, read func() Model) {
	var now Model
	if read != nil {
		now = read()
	}
	for outcome, at := range map[string]time.Time{"ok": now.LastOK, "failed": now.LastFailed} {
		seconds := 0.0
		if !at.IsZero() {
			seconds = float64(at.UnixMilli()) / 1000
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, seconds, outcome)
	}
}

// ObserveReply counts a model's reply to a request for a program by its form; "" is none.
func (m *Metrics) ObserveReply(form string) {
	if form != "" {
		m.replies.inc(form)
	}
}

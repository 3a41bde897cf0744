package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Spend has the current figures of the caps on token use.
type Spend struct {
	Ratios   map[string]float64 // highest used share of any cap, by kind of window; 1 means all of it
	Reserved int64              // tokens reserved by requests in flight
}

// spendMetrics are the counters of caps.
type spendMetrics struct{ refused set }

func newSpend(f factory) spendMetrics {
	return spendMetrics{f.set("recurgent_spend_refused_total",
		"Requests to the model that were not sent because of a cap of tokens, by kind of window.", "window",
		append(slices.Clone(spendWindows), other))}
}

// SpendRefused counts a request to the model that was not sent because of a cap with that kind of window.
func (m *Metrics) SpendRefused(window string) { m.spend.refused.inc(window) }

// collectSpend sends the figures of caps. A nil read means zero figures.
func (s *sources) collectSpend(ch chan<- prometheus.Metric, read func() Spend) {
	var now Spend
	if read != nil {
		now = read()
	}
	for _, window := range spendWindows {
		ch <- prometheus.MustNewConstMetric(s.spendRatio, prometheus.GaugeValue, now.Ratios[window], window)
	}
	ch <- prometheus.MustNewConstMetric(s.reserved, prometheus.GaugeValue, float64(now.Reserved))
}

package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Spend are figures of caps of what models may be asked, of now.
type Spend struct {
	Ratios   map[string]float64 // the largest share that is used of a cap, by kind of window
	Reserved int64              // tokens of requests that are under way
}

// spendMetrics are those of caps that are no figures of now.
type spendMetrics struct{ refused set }

func newSpend(f factory) spendMetrics {
	return spendMetrics{f.set("recurgent_spend_refused_total",
		"Requests to the model that were not sent because of a cap of tokens, by kind of window.", "window",
		append(slices.Clone(spendWindows), other))}
}

// SpendRefused counts a request to the model that was not sent because of a cap with that kind of window.
func (m *Metrics) SpendRefused(window string) { m.spend.refused.inc(window) }

// collectSpend sends the figures of caps. read may be nil.
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

package telemetry

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

func newStorage(f factory) set {
	return f.set("recurgent_storage_refused_total",
		"Requests that were refused, and calls that ended, because a share of what may be stored is full, by kind.",
		"kind", append(slices.Clone(storedKinds), other))
}

// StorageRefused counts data that was not stored because its owner's share of that kind is full.
func (m *Metrics) StorageRefused(kind string) { m.storage.inc(kind) }

// collectStored sends the sizes of stored data and their limits.
func (s *sources) collectStored(ch chan<- prometheus.Metric, st *Store) {
	for _, kind := range storedKinds {
		ch <- prometheus.MustNewConstMetric(s.stored, prometheus.GaugeValue, float64(st.Stored[kind]), kind)
		ch <- prometheus.MustNewConstMetric(s.storedMost, prometheus.GaugeValue, float64(st.StoredMost[kind]), kind)
	}
}

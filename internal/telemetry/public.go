package telemetry

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Public returns a gatherer of the same metrics without labels that name a role, a method of a tool or a namespace, so
// anybody may see them. It sums series that differ only in these labels, and drops metrics that cannot be summed.
func Public(g prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := g.Gather()
		out := families[:0]
		for _, f := range families {
			if hides(f) {
				f = summed(f)
			}
			if f != nil {
				out = append(out, f)
			}
		}
		return out, err
	})
}

// private are the labels that Public removes. Beside role, the label method is removed as well.
var private = []string{"role", "namespace"}

// hides reports whether the family has a private label. The label method alone is an HTTP method, which is public.
func hides(f *dto.MetricFamily) bool {
	return slices.ContainsFunc(f.Metric, func(m *dto.Metric) bool {
		return slices.ContainsFunc(m.Label,
			func(l *dto.LabelPair) bool { return slices.Contains(private, l.GetName()) })
	})
}

// summed returns the family without its private labels, or nil if its series cannot be added up. It may change the
// gathered metrics, which are copies.
func summed(f *dto.MetricFamily) *dto.MetricFamily {
	out := &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit}
	byLabels := map[string]*dto.Metric{}
	for _, m := range f.Metric {
		m.Label = slices.DeleteFunc(slices.Clone(m.Label), func(l *dto.LabelPair) bool {
			return l.GetName() == "method" || slices.Contains(private, l.GetName())
		})
		var key strings.Builder
		for _, l := range m.Label {
			key.WriteString(l.GetName() + "\x00" + l.GetValue() + "\x00")
		}
		sum := byLabels[key.String()]
		switch {
		case sum == nil && (m.Counter != nil || m.Gauge != nil):
			byLabels[key.String()] = m
			out.Metric = append(out.Metric, m)
		case m.Counter != nil:
			*sum.Counter.Value += m.Counter.GetValue()
		case m.Gauge != nil:
			*sum.Gauge.Value += m.Gauge.GetValue()
		default:
			return nil
		}
	}
	return out
}

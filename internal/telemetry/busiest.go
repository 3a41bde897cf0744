package telemetry

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits on the pairs of role and method. The names are free text, which clients choose.
const (
	maxShown   = 20   // pairs per scrape
	maxPairs   = 100  // pairs ever shown by a process, which limits the series that Prometheus stores
	maxTracked = 1024 // pairs counted in memory
)

// busiest counts calls by role and method, and shows the busiest pairs at scrape time. Because the names are free text,
// it limits both memory and series. A pair that is not shown may be forgotten in favour of a newer one, and only the
// first maxPairs that become one of the busiest are ever shown. Their counters never decrease.
type busiest struct {
	cap, show int
	refused   atomic.Int64

	mu       sync.RWMutex
	pairs    map[pair]*figures // guarded by mu; the figures themselves are atomic
	admitted int               // guarded by mu

	calls, seconds, shown, refusals *prometheus.Desc
}

type pair struct{ role, method string }

type figures struct {
	ok, failed atomic.Int64
	seconds    atomic.Uint64 // float64 bits
	admitted   bool          // guarded by busiest.mu
}

func (f *figures) total() int64 { return f.ok.Load() + f.failed.Load() }

func newBusiest(limit, show int) *busiest {
	return &busiest{
		cap: limit, show: show, pairs: map[pair]*figures{},
		calls: prometheus.NewDesc("recurgent_artifact_calls_total",
			"Calls of the busiest artifacts since the start; at most 100 pairs of role and method are shown in a process's life.", []string{"role", "method", "status"}, nil),
		seconds: prometheus.NewDesc("recurgent_artifact_call_duration_seconds_total",
			"Time that calls of the busiest artifacts took.", []string{"role", "method"}, nil),
		shown: prometheus.NewDesc("recurgent_artifact_pairs",
			"Pairs of role and method that have been shown, of the 100 that may be.", nil, nil),
		refusals: prometheus.NewDesc("recurgent_artifact_pairs_refused_total",
			"Times that a pair among the busiest was not shown because of the cap.", nil, nil),
	}
}

func (b *busiest) count(role, method string, ok bool, seconds float64) {
	p := pair{role, method}
	b.mu.RLock()
	f := b.pairs[p]
	b.mu.RUnlock()
	if f == nil {
		f = b.track(p)
	}
	if ok {
		f.ok.Add(1)
	} else {
		f.failed.Add(1)
	}
	for {
		old := f.seconds.Load()
		if f.seconds.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+seconds)) {
			return
		}
	}
}

// track starts counting a pair. If the table is full, it forgets the least busy of a few random pairs. The cost thus
// does not depend on the size of the table, and a pair that is called often is soon tracked again.
func (b *busiest) track(p pair) *figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.pairs[p]; f != nil {
		return f
	}
	if len(b.pairs) >= maxTracked {
		b.forgetOne()
	}
	// Cloned, because the names may be substrings of a request body, which would stay in memory.
	f := &figures{}
	b.pairs[pair{strings.Clone(p.role), strings.Clone(p.method)}] = f
	return f
}

func (b *busiest) forgetOne() {
	const hands = 16 // number of pairs to compare
	var least pair
	var found *figures
	seen := 0
	for p, f := range b.pairs { // map iteration starts at a random place
		if f.admitted {
			continue // at most maxPairs of maxTracked are admitted
		}
		if found == nil || f.total() < found.total() {
			least, found = p, f
		}
		if seen++; seen == hands {
			break
		}
	}
	delete(b.pairs, least)
}

type shownPair struct {
	pair
	*figures
	calls int64
}

// top returns the busiest pairs that may be shown. It admits new ones while there is room.
func (b *busiest) top() []shownPair {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]shownPair, 0, len(b.pairs))
	for p, f := range b.pairs {
		all = append(all, shownPair{p, f, f.total()})
	}
	slices.SortFunc(all, func(x, y shownPair) int {
		return cmp.Or(cmp.Compare(y.calls, x.calls), cmp.Compare(x.role, y.role), cmp.Compare(x.method, y.method))
	})
	shown := all[:0]
	for i, s := range all {
		switch {
		case len(shown) == b.show:
			return shown
		case s.admitted:
		case b.admitted < b.cap && i < b.show:
			s.figures.admitted = true
			b.admitted++
		case i < b.show:
			b.refused.Add(1)
			continue
		default:
			continue
		}
		shown = append(shown, s)
	}
	return shown
}

// Describe implements prometheus.Collector.
func (b *busiest) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.calls, b.seconds, b.shown, b.refusals} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (b *busiest) Collect(ch chan<- prometheus.Metric) {
	for _, s := range b.top() {
		// Label values must be valid UTF-8.
		role, method := strings.ToValidUTF8(s.role, "\ufffd"), strings.ToValidUTF8(s.method, "\ufffd")
		ch <- prometheus.MustNewConstMetric(b.calls, prometheus.CounterValue, float64(s.ok.Load()), role, method, "ok")
		ch <- prometheus.MustNewConstMetric(b.calls, prometheus.CounterValue, float64(s.failed.Load()), role, method,
			"error")
		ch <- prometheus.MustNewConstMetric(b.seconds, prometheus.CounterValue, math.Float64frombits(s.seconds.Load()),
			role, method)
	}
	b.mu.RLock()
	admitted := b.admitted
	b.mu.RUnlock()
	ch <- prometheus.MustNewConstMetric(b.shown, prometheus.GaugeValue, float64(admitted))
	ch <- prometheus.MustNewConstMetric(b.refusals, prometheus.CounterValue, float64(b.refused.Load()))
}

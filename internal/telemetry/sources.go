package telemetry

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Sources are functions that provide figures at each scrape. Each may be nil, may be called concurrently, and must be
// cheap.
type Sources struct {
	Store           func() Store
	Runners         func() Runners
	Artifacts       func() map[string]int // by lifecycle state
	Calls           func() (running, waiting int)
	Recommendations func() int   // number of open ones
	Ready           func() error // nil error: the daemon accepts calls
	ProgramCache    func() int64 // bytes of cached compiled programs
	Model           func() Model // nil if the daemon has no model
	Spend           func() Spend
	Cluster         func() Cluster  // nil if the daemon does not share its store
	Database        func() Database // nil if the store is not a database
}

// Store has the figures of a store. The first four count since it was opened; the others are current.
type Store struct {
	Commits, Fsyncs, JournalBytes, Quarantined int64
	CheckpointLag                              int64 // journal entries that are not in the files yet
	Sessions, Tools                            int64
	// bytes by kind, of all namespaces; Stored are used, StoredMost is the limit
	Stored, StoredMost map[string]int64
}

// Runners has the figures of the runner pool. The last three count since the start; the others are current.
type Runners struct {
	Busy, Idle, Warm int64
	WarmBytes        int64 // memory of the warm runners, without shared pages
	Spawned          int64
	EngineFailures   int64
	Killed           map[string]int64 // by reason
}

// Watch sets the functions that provide the figures. Before the first call all of them are 0.
func (m *Metrics) Watch(s Sources) { m.sources.from.Store(&s) }

// Sources returns the argument of the last Watch. It is empty before the first.
func (m *Metrics) Sources() *Sources { return m.sources.from.Load() }

// ProviderRequests returns the number of questions to the model since the start, by outcome. Outcomes that never
// happened are left out.
func (m *Metrics) ProviderRequests() map[string]int64 {
	counts := map[string]int64{}
	for i, c := range m.provider.counters {
		var got dto.Metric
		if err := c.Write(&got); err == nil && got.GetCounter().GetValue() > 0 {
			counts[m.provider.values[i]] = int64(got.GetCounter().GetValue())
		}
	}
	return counts
}

// sources is the collector for figures that other packages count.
type sources struct {
	from atomic.Pointer[Sources]

	ready, running, waiting, recommendations    *prometheus.Desc
	artifacts, sessions, tools                  *prometheus.Desc
	runners, warmBytes, spawned, killed, faults *prometheus.Desc
	commits, fsyncs, journal, quarantined       *prometheus.Desc
	lag, programs, spendRatio, reserved, model  *prometheus.Desc
	stored, storedMost, programCache            *prometheus.Desc
	cluster                                     clusterFigures
	database                                    databaseFigures
}

func newSources() *sources {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	s := &sources{
		ready:           desc("recurgent_ready", "1 while the daemon takes calls, else 0."),
		running:         desc("recurgent_calls_in_flight", "Calls that run, or forge, now."),
		waiting:         desc("recurgent_calls_waiting", "Calls that wait for their turn."),
		recommendations: desc("recurgent_recommendations_open", "Recommendations neither applied nor dismissed."),
		artifacts:       desc("recurgent_artifacts", "Artifacts by lifecycle state.", "state"),
		sessions:        desc("recurgent_sessions", "Sessions kept."),
		tools:           desc("recurgent_tools", "Tools in the registry."),
		runners: desc("recurgent_runners",
			"Runner processes: busy with a call, warm for a program, idle blanks.", "state"),
		warmBytes: desc("recurgent_warm_runners_bytes",
			"Memory of the runners that are warm for a program, without what all runners share."),
		spawned: desc("recurgent_runners_spawned_total", "Runner processes started."),
		killed: desc("recurgent_runners_killed_total",
			"Runner processes ended by the daemon or by their own death, by reason.", "reason"),
		faults: desc("recurgent_engine_failures_total",
			"Programs that an internal fault of the engine ended, while they were compiled or run."),
		commits:     desc("recurgent_store_commits_total", "Commits that were acknowledged."),
		fsyncs:      desc("recurgent_store_fsyncs_total", "Times that a write was forced to the disk."),
		journal:     desc("recurgent_store_journal_bytes_total", "Bytes written to the journal."),
		quarantined: desc("recurgent_store_quarantined_files_total", "Corrupt files moved aside."),
		lag: desc("recurgent_store_checkpoint_lag_entries",
			"Journal entries that the files do not hold yet."),
	}
	s.programs = desc("recurgent_native_programs", "Kept for dashboards of before: 0.", "state")
	s.spendRatio = desc("recurgent_spend_used_ratio",
		"The largest share that is used of a cap of tokens, 1 for all of it, by kind of window; 0 without a cap.",
		"window")
	s.reserved = desc("recurgent_spend_reserved_tokens", "Tokens that requests under way reserve of the caps.")
	s.model = newModelFigure()
	s.stored = desc("recurgent_stored_bytes", "Bytes that things of all namespaces take, by kind.", "kind")
	s.storedMost = desc("recurgent_stored_limit_bytes", "Bytes that things of all namespaces may take, by kind.",
		"kind")
	s.programCache = desc("recurgent_program_cache_bytes", "Bytes of the compiled programs that are kept.")
	s.cluster, s.database = newClusterFigures(), newDatabaseFigures()
	// So Collect never finds nil.
	s.from.Store(&Sources{})
	return s
}

// Describe implements prometheus.Collector.
func (s *sources) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.ready, s.running, s.waiting, s.recommendations, s.artifacts, s.sessions,
		s.tools, s.runners, s.warmBytes,
		s.spawned, s.killed, s.faults, s.commits, s.fsyncs, s.journal, s.quarantined, s.lag, s.programs, s.spendRatio,
		s.reserved, s.model, s.stored, s.storedMost, s.programCache} {
		ch <- d
	}
	s.cluster.describe(ch)
	s.database.describe(ch)
}

// Collect implements prometheus.Collector.
func (s *sources) Collect(ch chan<- prometheus.Metric) {
	from := s.from.Load()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	ready := 0.0
	if from.Ready != nil && from.Ready() == nil {
		ready = 1
	}
	gauge(s.ready, ready)

	var running, waiting, open int
	if from.Calls != nil {
		running, waiting = from.Calls()
	}
	if from.Recommendations != nil {
		open = from.Recommendations()
	}
	gauge(s.running, float64(running))
	gauge(s.waiting, float64(waiting))
	gauge(s.recommendations, float64(open))

	byState(ch, s.artifacts, from.Artifacts, artifactStates)
	byState(ch, s.programs, nil, nativeStates)
	var compiled int64
	if from.ProgramCache != nil {
		compiled = from.ProgramCache()
	}
	gauge(s.programCache, float64(compiled))

	var st Store
	if from.Store != nil {
		st = from.Store()
	}
	gauge(s.sessions, float64(st.Sessions))
	gauge(s.tools, float64(st.Tools))
	gauge(s.lag, float64(st.CheckpointLag))
	counter(s.commits, st.Commits)
	counter(s.fsyncs, st.Fsyncs)
	counter(s.journal, st.JournalBytes)
	counter(s.quarantined, st.Quarantined)

	s.collectStored(ch, &st)
	collectModel(ch, s.model, from.Model)
	s.collectSpend(ch, from.Spend)
	s.cluster.collect(ch, from.Cluster)
	s.database.collect(ch, from.Database)

	s.collectRunners(ch, from.Runners)
}

// collectRunners sends the figures of the runner pool.
func (s *sources) collectRunners(ch chan<- prometheus.Metric, from func() Runners) {
	var ru Runners
	if from != nil {
		ru = from()
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(s.runners, float64(ru.Busy), "busy")
	gauge(s.runners, float64(ru.Idle), "idle")
	gauge(s.runners, float64(ru.Warm), "warm")
	gauge(s.warmBytes, float64(ru.WarmBytes))
	counter(s.spawned, ru.Spawned)
	counter(s.faults, ru.EngineFailures)
	for reason, n := range closeOver(ru.Killed, runnerKills) {
		counter(s.killed, n, reason)
	}
}

// byState sends a gauge for each state. A nil count means 0.
func byState(ch chan<- prometheus.Metric, d *prometheus.Desc, count func() map[string]int, states []string) {
	var n map[string]int
	if count != nil {
		n = count()
	}
	for _, state := range states {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n[state]), state)
	}
}

// closeOver maps counts to the closed set values, whose last value is other.
func closeOver(counts map[string]int64, values []string) map[string]int64 {
	closed := make(map[string]int64, len(values))
	for _, v := range values {
		closed[v] = 0
	}
	for v, n := range counts {
		v = strings.ReplaceAll(v, " ", "_")
		if !slices.Contains(values, v) {
			v = other
		}
		closed[v] += n
	}
	return closed
}

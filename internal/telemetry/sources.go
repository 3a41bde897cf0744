package telemetry

import (
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/recurgentd/recurgentd/internal/agent"
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

// Cluster has the figures of a daemon that shares its store with others. Replicas, Sessions and Age are current; the
// others count since the start.
type Cluster struct {
	Replicas, Sessions int64         // live replicas, including this one; sessions that it owns
	Age                time.Duration // time since its last heartbeat
	Here               int64         // requests for a session that it already owned
	In, Out            int64         // requests that other replicas forwarded to it, and that it forwarded
	// changes that the store rejected because another replica owned the session; times that this replica was considered
	// dead
	Fenced, Lost int64
}

// clusterFigures are the descriptions of Cluster's metrics.
type clusterFigures struct {
	replicas, sessions, age, here, forwarded, fenced, lost *prometheus.Desc
}

func newClusterFigures() clusterFigures {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return clusterFigures{
		replicas: desc("recurgent_cluster_replicas",
			"Replicas that share the store and are alive, this one included; 0 without others to share it with."),
		sessions: desc("recurgent_cluster_sessions_owned", "Sessions that this replica owns."),
		age: desc("recurgent_cluster_heartbeat_age_seconds",
			"Time since this replica renewed its heartbeat in the store; 0 without others."),
		fenced: desc("recurgent_cluster_fenced_total",
			"Calls and changes of contexts that the store refused, since another replica owned the session by then."),
		lost: desc("recurgent_cluster_heartbeats_lost_total",
			"Times that this replica was counted as dead and joined again under another id."),
		here: desc("recurgent_cluster_sessions_used_total",
			"Times that a session was used which this replica owned already."),
		forwarded: desc("recurgent_cluster_forwarded_total",
			"Requests that other replicas forwarded to this one (in), and that it forwarded to the owners of their sessions (out).", "direction"),
	}
}

func (c clusterFigures) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.replicas, c.sessions, c.age, c.here, c.forwarded, c.fenced, c.lost} {
		ch <- d
	}
}

// collect sends the figures. A nil read means zero figures.
func (c clusterFigures) collect(ch chan<- prometheus.Metric, read func() Cluster) {
	var now Cluster
	if read != nil {
		now = read()
	}
	ch <- prometheus.MustNewConstMetric(c.replicas, prometheus.GaugeValue, float64(now.Replicas))
	ch <- prometheus.MustNewConstMetric(c.sessions, prometheus.GaugeValue, float64(now.Sessions))
	ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, now.Age.Seconds())
	ch <- prometheus.MustNewConstMetric(c.fenced, prometheus.CounterValue, float64(now.Fenced))
	ch <- prometheus.MustNewConstMetric(c.lost, prometheus.CounterValue, float64(now.Lost))
	ch <- prometheus.MustNewConstMetric(c.here, prometheus.CounterValue, float64(now.Here))
	ch <- prometheus.MustNewConstMetric(c.forwarded, prometheus.CounterValue, float64(now.In), "in")
	ch <- prometheus.MustNewConstMetric(c.forwarded, prometheus.CounterValue, float64(now.Out), "out")
}

// Database has the figures about the use of a shared database. Connections is current; the others count since the
// start.
type Database struct {
	Groups      int64         // transactions that committed calls
	GroupsTook  time.Duration // total time
	PoolWaits   int64         // number of times that no connection was free
	PoolWaited  time.Duration // total time of these waits
	LostLeases  int64
	Connections int64
}

// databaseFigures are the descriptions of Database's metrics.
type databaseFigures struct {
	commits, waits, waited, leases, connections *prometheus.Desc
}

func newDatabaseFigures() databaseFigures {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return databaseFigures{
		commits: desc("recurgent_database_commit_duration_seconds",
			"Transactions that committed calls, from the request for a connection to the end of the commit; 0 without a database."),
		waits: desc("recurgent_database_pool_waits_total",
			"Times that all connections to the database were in use when one was needed."),
		waited: desc("recurgent_database_pool_wait_seconds_total",
			"Time that was spent waiting for a connection to the database, in sum."),
		leases: desc("recurgent_database_leases_lost_total",
			"Leases, as of forging a method or of maintenance, that this replica could not renew in time."),
		connections: desc("recurgent_database_connections", "Connections to the database, in use or idle."),
	}
}

func (d databaseFigures) describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{d.commits, d.waits, d.waited, d.leases, d.connections} {
		ch <- one
	}
}

// collect sends the figures. A nil read means zero figures.
func (d databaseFigures) collect(ch chan<- prometheus.Metric, read func() Database) {
	var now Database
	if read != nil {
		now = read()
	}
	ch <- prometheus.MustNewConstSummary(d.commits, uint64(now.Groups), now.GroupsTook.Seconds(), nil)
	ch <- prometheus.MustNewConstMetric(d.waits, prometheus.CounterValue, float64(now.PoolWaits))
	ch <- prometheus.MustNewConstMetric(d.waited, prometheus.CounterValue, now.PoolWaited.Seconds())
	ch <- prometheus.MustNewConstMetric(d.leases, prometheus.CounterValue, float64(now.LostLeases))
	ch <- prometheus.MustNewConstMetric(d.connections, prometheus.GaugeValue, float64(now.Connections))
}

// namespaceMeters are the metrics of one namespace, or of all those without metrics of their own.
type namespaceMeters struct {
	calls                     [len(callStatuses)]prometheus.Counter
	requests, prompt, answers prometheus.Counter
}

// newNamespaces creates metrics for each of the namespaces and one set for all others. Without names it creates none.
func (m *Metrics) newNamespaces(f factory, names []agent.Namespace) {
	if len(names) == 0 {
		return
	}
	const whose = " by namespace: those of --metrics-namespaces, and other for all others."
	calls := f.counterVec("recurgent_namespace_calls_total", "Calls that ended, nested ones included,"+whose,
		"namespace", "status")
	requests := f.counterVec("recurgent_namespace_model_requests_total", "Requests sent to the model's server,"+whose,
		"namespace")
	tokens := f.counterVec("recurgent_namespace_tokens_total", "Tokens which the provider counted,"+whose, "namespace",
		"direction")
	figures := func(label string) *namespaceMeters {
		n := &namespaceMeters{requests: requests.WithLabelValues(label),
			prompt: tokens.WithLabelValues(label, "prompt"), answers: tokens.WithLabelValues(label, "completion")}
		for i, status := range callStatuses {
			n.calls[i] = calls.WithLabelValues(label, status)
		}
		return n
	}
	m.namespaces = map[agent.Namespace]*namespaceMeters{}
	for _, name := range names {
		m.namespaces[name] = figures(string(name))
	}
	m.namespace = figures(other)
}

func (n *namespaceMeters) ask(u agent.Usage) {
	n.requests.Add(float64(max(u.ModelRequests, 0)))
	n.prompt.Add(float64(max(u.PromptTokens, 0)))
	n.answers.Add(float64(max(u.CompletionTokens, 0)))
}

// In returns the metrics for calls in the namespace. Only the figures by namespace differ; all others are shared.
func (m *Metrics) In(name agent.Namespace) *Metrics {
	if own := m.namespaces[name]; own != nil {
		return &Metrics{m.meters, own}
	}
	return m
}

// nativeMetrics are the metrics of compiled programs.
type nativeMetrics struct {
	tierRuns    set
	compiled    set
	compileTime prometheus.Histogram
}

// was is the help text of metrics that earlier versions had.
const was = "Kept for dashboards of before: 0."

func newNative(f factory) nativeMetrics {
	// An earlier version compiled programs in the background and compared them with an engine. Old dashboards still
	// find these metrics, at 0.
	f.set("recurgent_native_builds_total", was, "outcome", nativeBuilds)
	f.histogram("recurgent_native_build_duration_seconds", was,
		[]float64{.01, .05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120})
	f.set("recurgent_native_faults_total", was, "kind", nativeFaults)
	f.counter("recurgent_engine_differences_total", was)
	return nativeMetrics{
		tierRuns: f.set("recurgent_tier_runs_total",
			"Runs of programs for calls, by what answered: an interpreter (engine), or the compiled program (native).",
			"tier", tiers),
		compiled: f.set("recurgent_builds_total",
			"Programs compiled, by how that ended: refused, the compiler found something wrong with the program, or it needs more than a build may have.", "outcome", builds),
		compileTime: f.histogram("recurgent_build_duration_seconds",
			"Time of compiling a program, without the wait for a turn.",
			[]float64{.05, .1, .15, .25, .5, 1, 2, 5, 10, 30, 60}),
	}
}

// Run counts a run of a program. tier is engine or native. engine is go, ssa or yaegi, or "" for a compiled program.
func (m *Metrics) Run(engine, tier string) {
	m.native.tierRuns.inc(tier)
	if engine != "" {
		m.engineRuns.inc(engine)
	}
}

// Build counts the compilation of a program. outcome is ok, refused, failed or canceled.
func (m *Metrics) Build(outcome string, d time.Duration) {
	m.native.compiled.inc(outcome)
	m.native.compileTime.Observe(d.Seconds())
}

// modelServers are the hosts for which the semantic conventions of OpenTelemetry define a gen_ai.provider.name. A host
// that begins with a dot includes all its subdomains.
var modelServers = []struct{ host, name string }{
	{".openai.com", "openai"}, {".anthropic.com", "anthropic"}, {".openai.azure.com", "azure.ai.openai"},
	{".cognitiveservices.azure.com", "azure.ai.openai"},
	{".services.ai.azure.com", "azure.ai.inference"}, {".models.ai.azure.com", "azure.ai.inference"},
	{"generativelanguage.googleapis.com", "gcp.gemini"},
	{"aiplatform.googleapis.com", "gcp.vertex_ai"}, {".mistral.ai", "mistral_ai"}, {".groq.com", "groq"},
	{".deepseek.com", "deepseek"}, {".x.ai", "x_ai"},
	{".cohere.com", "cohere"}, {".cohere.ai", "cohere"}, {".perplexity.ai", "perplexity"},
	{".ml.cloud.ibm.com", "ibm.watsonx.ai"},
}

// ModelServer returns the gen_ai.provider.name of a model server: the one from the semantic conventions if they know
// the host, otherwise the host without a port. It returns "" if the URL has no host.
func ModelServer(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	for _, s := range modelServers {
		if host == strings.TrimPrefix(s.host, ".") || strings.HasPrefix(s.host, ".") &&
			strings.HasSuffix(host, s.host) {
			return s.name
		}
	}
	switch {
	case strings.HasSuffix(host, "-aiplatform.googleapis.com"): // the host begins with a region
		return "gcp.vertex_ai"
	case strings.HasPrefix(host, "bedrock") && strings.HasSuffix(host, ".amazonaws.com"):
		return "aws.bedrock"
	}
	return host
}

// serverName returns the attribute for that server, or none if name is "". The slice has no spare capacity, so
// concurrent appends do not share memory.
func serverName(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String("gen_ai.provider.name", name)}
}

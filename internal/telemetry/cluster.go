package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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

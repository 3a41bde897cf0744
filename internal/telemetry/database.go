package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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

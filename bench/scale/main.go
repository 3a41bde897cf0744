// Command scale simulates many replicas of the daemon on one or several PostgreSQL databases, using figures measured on
// one machine, and prints a table for docs/scale-out.md.
//
// Each replica has clients that call, wait for the reply and call again. A call costs processor time of the replica.
// Then it waits for the replica's committer, which puts all calls that wait for the same database into one transaction.
// A transaction costs processor time of the database, a fixed part and a part per call. It also waits for round trips
// and for the standby. Transactions that count on the same tool wait for each other.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	p := measured()
	flag.Float64Var(&p.Run, "run", p.Run, "processor time of a replica for a warm call, ms")
	flag.Float64Var(&p.Forward, "forward", p.Forward,
		"processor time of two replicas together for forwarding one call, ms")
	flag.Float64Var(&p.Begin, "begin", p.Begin, "processor time of the database for a transaction, ms")
	flag.Float64Var(&p.Each, "each", p.Each, "processor time of the database for a call in a transaction, ms")
	flag.Float64Var(&p.Wait, "wait", p.Wait,
		"time of a transaction in which no processor works for it (round trips, disk, standby), ms")
	flag.IntVar(&p.Cores, "cores", p.Cores, "processors of a replica")
	flag.IntVar(&p.DatabaseCores, "database-cores", p.DatabaseCores, "processors of a database")
	flag.Parse()
	fmt.Fprint(os.Stdout, table(p))
}

// table simulates the cases in the document and returns the table.
func table(p Parameters) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| Replicas | Databases | Forwarded | Calls per second, of one replica's | Median wait for the commit, of one replica's | Databases busy | Every call counts on one tool |\n|---|---|---|---|---|---|---|\n")
	one := simulate(p, Case{Replicas: 1, Databases: 1})
	for _, c := range []Case{{Replicas: 1, Databases: 1}, {Replicas: 3, Databases: 1},
		{Replicas: 3, Databases: 1, Forwarded: 2.0 / 3},
		{Replicas: 10, Databases: 1}, {Replicas: 10, Databases: 3}, {Replicas: 10, Databases: 3, Forwarded: 0.9},
		{Replicas: 100, Databases: 1}, {Replicas: 100, Databases: 10}, {Replicas: 100, Databases: 30}} {
		apart := simulate(p, c)
		c.OneTool = true
		hot := simulate(p, c)
		fmt.Fprintf(&b, "| %d | %d | %.0f %% | %.1f | %.1f | %.0f %% | %.1f |\n", c.Replicas, c.Databases,
			100*c.Forwarded, apart.Rate/one.Rate, apart.Commit/one.Commit, 100*apart.Busy, hot.Rate/one.Rate)
	}
	return b.String()
}

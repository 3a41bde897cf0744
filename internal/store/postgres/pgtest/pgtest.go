// Package pgtest runs real PostgreSQL servers for tests, from the programs in Debian's packages postgresql and
// pgbouncer.
//
// NewDatabase returns a fresh database on one server that all tests of a binary share. Start starts a separate cluster,
// on request with a synchronous standby. A test may kill, restart and promote its servers. Servers only listen on Unix
// sockets below the temporary directory. If the tests run as root, the servers run as the user postgres or nobody,
// because PostgreSQL refuses root. The servers end and their files are removed when the test ends, or when its process
// ends for any reason.
//
// Everything may be called concurrently, except for the methods of a Cluster that change which servers run.
package pgtest

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Options configures a cluster. The zero value is one server.
type Options struct {
	Standby  bool     // add a second server; each commit is written to it before it is acknowledged
	Fsync    bool     // survive a crash of the machine, not only of processes; slow
	Settings []string // further settings of postgresql.conf, such as "max_connections=10"
}

// A Cluster is a primary and, on request, a standby.
type Cluster struct {
	primary, standby *server // standby is nil if there is none
	settings         []string
	dead             *server // the former primary, from Promote until AddStandby
}

// shared is the server of NewDatabase. It starts with the first use and ends with the process.
var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
	names   atomic.Int64
}

// NewDatabase creates an empty database on the server that the tests of this binary share, and returns its URL. At the
// end of the test it closes the database's connections and drops it.
func NewDatabase(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(func() { shared.cluster, shared.err = start(Options{}) })
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	name := fmt.Sprintf("test%d", shared.names.Add(1))
	url := shared.cluster.CreateDatabase(tb, name)
	tb.Cleanup(func() {
		if _, err := shared.cluster.primary.sql("postgres", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Error(err)
		}
	})
	return url
}

// Clear empties a database of NewDatabase and closes its connections.
func Clear(tb testing.TB, address string) {
	tb.Helper()
	name := nameIn(tb, address)
	shared.cluster.Exec(tb, "postgres", "DROP DATABASE "+name+" WITH (FORCE)", "CREATE DATABASE "+name)
}

// Query runs SQL on a database of NewDatabase and returns the output, as Exec does.
func Query(tb testing.TB, address, sql string) string {
	tb.Helper()
	return shared.cluster.Exec(tb, nameIn(tb, address), sql)
}

// Dump returns the content of a database of NewDatabase as SQL. Printable ASCII in bytea values is not escaped, so
// tests can search for it.
func Dump(tb testing.TB, address string) []byte {
	tb.Helper()
	out, err := shared.cluster.primary.dump(nameIn(tb, address), "PGOPTIONS=-c bytea_output=escape")
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// nameIn returns the name of the database in its URL.
func nameIn(tb testing.TB, address string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// Start starts a cluster. It ends with the test.
func Start(tb testing.TB, o Options) *Cluster {
	tb.Helper()
	c, err := start(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, s := range []*server{c.standby, c.primary, c.dead} {
			if s != nil {
				s.end()
			}
		}
		if tb.Failed() {
			tb.Logf("PostgreSQL wrote:\n%s", c.Log())
		}
	})
	return c
}

func start(o Options) (*Cluster, error) {
	c := &Cluster{settings: append(settings(o.Fsync), o.Settings...)}
	primary, err := newServer(c.settings)
	if err != nil {
		return nil, err
	}
	c.primary = primary
	if err = primary.initialize(); err == nil {
		err = primary.start()
	}
	if err == nil && o.Standby {
		err = c.addStandby()
	}
	if err != nil {
		primary.end()
		return nil, err
	}
	return c, nil
}

// settings returns the server's configuration. Without fsync, tests are fast and still survive the kill of a process.
func settings(fsync bool) []string {
	s := []string{"listen_addresses=", "unix_socket_permissions=0777", "max_connections=200", "shared_buffers=32MB",
		"dynamic_shared_memory_type=mmap",
		"wal_level=replica", "wal_keep_size=256MB", "hot_standby=on", "log_min_messages=warning", "lc_messages=C",
		"timezone=UTC"}
	if !fsync {
		s = append(s, "fsync=off", "full_page_writes=off")
	}
	return s
}

// CreateDatabase creates an empty database and returns its URL.
func (c *Cluster) CreateDatabase(tb testing.TB, name string) string {
	tb.Helper()
	c.Exec(tb, "postgres", "CREATE DATABASE "+name)
	return c.URL(name)
}

// URL returns the URL of a database of the cluster. With a standby, or a killed former primary, it names both servers,
// and clients choose the one that accepts writes.
func (c *Cluster) URL(database string) string {
	q := url.Values{"user": {superuser}, "host": {c.primary.dir}, "sslmode": {"disable"}}
	other := c.standby
	if other == nil {
		other = c.dead
	}
	if other != nil {
		hosts := []string{c.primary.dir, other.dir}
		q.Set("host", strings.Join(hosts, ","))
		q.Set("target_session_attrs", "read-write")
	}
	return "postgres:///" + database + "?" + q.Encode()
}

// Sockets returns the Unix sockets of the servers, the primary's first, for proxies between clients and servers.
func (c *Cluster) Sockets() []string {
	out := []string{c.primary.socket()}
	if c.standby != nil {
		out = append(out, c.standby.socket())
	}
	return out
}

// Exec runs SQL on the primary, each text as its own statement, and returns the output, unaligned and without headers.
func (c *Cluster) Exec(tb testing.TB, database string, sql ...string) string {
	tb.Helper()
	out, err := c.primary.sql(database, sql...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// CopyTo dumps a database and restores it as a new database of another cluster. It returns the new URL.
func (c *Cluster) CopyTo(tb testing.TB, other *Cluster, database string) string {
	tb.Helper()
	url := other.CreateDatabase(tb, database)
	sql, err := c.primary.dump(database)
	if err == nil {
		err = other.primary.load(database, sql)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return url
}

// Kill kills the primary and all its processes with SIGKILL, and waits until they are gone.
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	if err := c.primary.kill(); err != nil {
		tb.Fatal(err)
	}
}

// KillStandby does the same to the standby. If the primary runs, it waits until the primary has noticed. Commits wait
// until RestartStandby.
func (c *Cluster) KillStandby(tb testing.TB) {
	tb.Helper()
	err := c.standby.kill()
	if err == nil && c.primary.running() {
		err = c.primary.untilReplication("")
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Restart starts a killed primary again with its data. It returns once the primary accepts writes and the standby, if
// it runs, is connected again. It first stops a running primary cleanly, without waiting for its clients.
func (c *Cluster) Restart(tb testing.TB) {
	tb.Helper()
	err := c.primary.restart()
	if err == nil && c.standby != nil && c.standby.running() {
		err = c.primary.untilSynchronous()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// RestartStandby starts a killed standby again. If the primary runs, it waits until commits wait for the standby.
func (c *Cluster) RestartStandby(tb testing.TB) {
	tb.Helper()
	err := c.standby.restart()
	if err == nil && c.primary.running() {
		err = c.primary.untilSynchronous()
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// Promote makes the standby the primary, and returns once it accepts writes. The old primary must have been killed,
// because it would still accept writes. Afterwards the cluster has no standby, and commits wait for none.
func (c *Cluster) Promote(tb testing.TB) {
	tb.Helper()
	if c.primary.running() {
		tb.Fatal("pgtest: the primary runs: kill it before the standby is promoted")
	}
	if _, err := c.standby.sql("postgres", "SELECT pg_promote(true, 120)"); err != nil {
		tb.Fatal(err)
	}
	c.primary, c.standby, c.dead = c.standby, nil, c.primary
}

// AddStandby adds a standby, made from a base backup of the primary. It replaces the former primary, if Promote left
// one. Commits wait for the standby from then on.
func (c *Cluster) AddStandby(tb testing.TB) {
	tb.Helper()
	if err := c.addStandby(); err != nil {
		tb.Fatal(err)
	}
}

func (c *Cluster) addStandby() error {
	s := c.dead
	if s == nil {
		var err error
		if s, err = newServer(c.settings); err != nil {
			return err
		}
	}
	err := s.copyOf(c.primary)
	if err == nil {
		err = s.start()
	}
	if err == nil {
		// On the primary only: a promoted copy has no standby to wait for.
		_, err = c.primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'",
			"SELECT pg_reload_conf()")
	}
	if err == nil {
		err = c.primary.untilSynchronous()
	}
	if err != nil {
		s.end()
		return err
	}
	c.standby, c.dead = s, nil
	return nil
}

// untilSynchronous waits until commits wait for the standby.
func (s *server) untilSynchronous() error { return s.untilReplication("sync") }

// untilReplication waits until the standby's sync_state is want, or until none is connected if want is "". It runs two
// statements, because a session only loads new settings between statements.
func (s *server) untilReplication(want string) error {
	got := ""
	for end := time.Now().Add(patience); time.Now().Before(end); {
		out, err := s.sql("postgres", "SELECT FROM pg_sleep(0.05)", "SELECT sync_state FROM pg_stat_replication")
		if got = strings.TrimSpace(out); err != nil || got == want {
			return err
		}
	}
	return fmt.Errorf("pgtest: the standby is %q after %s, not %q", got, patience, want)
}

// ProcessorTime returns the processor time that the primary's processes have used so far.
func (c *Cluster) ProcessorTime() time.Duration {
	ticks := 0
	for _, pid := range append(childrenOf(c.primary.process.pid), c.primary.process.pid) {
		ticks += ticksOf(pid)
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ, on every Linux
}

// Log returns what the servers have logged so far.
func (c *Cluster) Log() string {
	var b strings.Builder
	for _, s := range []*server{c.primary, c.standby, c.dead} {
		if s != nil {
			b.WriteString(s.output.String())
		}
	}
	return b.String()
}

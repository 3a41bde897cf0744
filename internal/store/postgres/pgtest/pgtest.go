// Package pgtest gives tests real PostgreSQL servers, from the programs of Debian's packages postgresql and pgbouncer.
//
// NewDatabase returns a fresh database of one server that all tests of a binary share. Start starts a cluster of the test's
// own, with a synchronous standby where asked, which may be killed, restarted and promoted. Servers listen on unix sockets
// below the temporary directory only. Root runs them as the user postgres or nobody, since PostgreSQL refuses root. They end,
// and their files are removed, when the test ends, or the test's process in whatever way.
//
// Everything may be called concurrently, but for the methods of a Cluster that change what runs.
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

// Options are what a cluster may have beyond one server.
type Options struct {
	Standby  bool     // a second server, to which each commit is written before it is acknowledged
	Fsync    bool     // survive the death of the machine, not of processes only; slow
	Settings []string // more of postgresql.conf, such as "max_connections=10"
}

// A Cluster is a primary, and a standby where there is one.
type Cluster struct {
	primary, standby *server // standby is nil where there is none
	settings         []string
	dead             *server // the primary of before Promote, until AddStandby
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
	names   atomic.Int64
}

// NewDatabase creates an empty database on the server that the tests of this binary share, and returns its URL. The database
// is dropped at the end of the test, with its connections.
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

// Clear makes a database of NewDatabase empty again, and ends its connections.
func Clear(tb testing.TB, address string) {
	tb.Helper()
	name := nameIn(tb, address)
	shared.cluster.Exec(tb, "postgres", "DROP DATABASE "+name+" WITH (FORCE)", "CREATE DATABASE "+name)
}

// Query runs SQL on a database of NewDatabase and returns what it prints, as Exec does.
func Query(tb testing.TB, address, sql string) string {
	tb.Helper()
	return shared.cluster.Exec(tb, nameIn(tb, address), sql)
}

// Dump returns all that a database of NewDatabase holds, as text. Bytes stand in it as they are where they are printable ASCII.
func Dump(tb testing.TB, address string) []byte {
	tb.Helper()
	out, err := shared.cluster.primary.dump(nameIn(tb, address), "PGOPTIONS=-c bytea_output=escape")
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// nameIn is the name of the database in its URL.
func nameIn(tb testing.TB, address string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// Start starts a cluster, which ends with the test.
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

// URL names a database of the cluster. With a standby it names both servers; clients choose the one that takes writes.
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

// Sockets returns the unix sockets of the servers, the primary's first, for what stands between clients and servers.
func (c *Cluster) Sockets() []string {
	out := []string{c.primary.socket()}
	if c.standby != nil {
		out = append(out, c.standby.socket())
	}
	return out
}

// Exec runs SQL on the primary, each statement on its own where there are several texts, and returns what it prints,
// unaligned and without headers.
func (c *Cluster) Exec(tb testing.TB, database string, sql ...string) string {
	tb.Helper()
	out, err := c.primary.sql(database, sql...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// CopyTo dumps a database and restores it as a new one of another cluster, whose URL it returns.
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

// Kill ends the primary and all its processes by SIGKILL, and returns when they are gone.
func (c *Cluster) Kill(tb testing.TB) {
	tb.Helper()
	if err := c.primary.kill(); err != nil {
		tb.Fatal(err)
	}
}

// KillStandby does the same to the standby, and returns when the primary has noticed, where it runs. Commits wait until RestartStandby.
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

// Restart starts a killed primary again on its data, and returns once it takes writes, and the standby is
// there again. One that runs is stopped first, cleanly
// but without waiting for its clients.
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

// RestartStandby starts a killed standby again, and returns when commits wait for it, where the primary runs.
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

// Promote makes the standby the primary, and returns once it takes writes. The primary must have been killed, as a second one
// beside it would take writes too. The cluster has no standby afterwards, and commits wait for none.
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

// AddStandby gives the cluster a standby, made from a base backup of the primary, in place of the server that was the primary
// before Promote, if there was one. Commits wait for it from then on.
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
		// On the primary alone: a copy that is promoted has no standby that it could wait for.
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

// untilReplication waits until the standby's state is that one, "" for none that is connected. A session learns of new settings between two
// statements only.
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

// ProcessorTime is what the primary's processes took so far.
func (c *Cluster) ProcessorTime() time.Duration {
	ticks := 0
	for _, pid := range append(childrenOf(c.primary.process.pid), c.primary.process.pid) {
		ticks += ticksOf(pid)
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ, on every Linux
}

// Log returns what the servers wrote so far.
func (c *Cluster) Log() string {
	var b strings.Builder
	for _, s := range []*server{c.primary, c.standby, c.dead} {
		if s != nil {
			b.WriteString(s.output.String())
		}
	}
	return b.String()
}

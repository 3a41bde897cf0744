package pgtest

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Pool starts pgbouncer in transaction mode for the cluster's primary, and returns the URL of a database behind it. The
// pool has few connections, so clients have to share them. pgbouncer ends with the test.
func (c *Cluster) Pool(tb testing.TB, database string) string {
	tb.Helper()
	p, err := find("pgbouncer")
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := p.tempDir()
	if err != nil {
		tb.Fatal(err)
	}
	config := strings.Join([]string{"[databases]", "* = host=" + c.primary.dir + " user=" + superuser,
		"[pgbouncer]", "pool_mode=transaction", "auth_type=any", "listen_port=6432", "unix_socket_dir=" + dir,
		"unix_socket_mode=0777",
		"default_pool_size=4", "max_client_conn=500", "server_lifetime=5",
		"ignore_startup_parameters=extra_float_digits", ""}, "\n")
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		tb.Fatal(err)
	}
	out := &output{}
	ready := out.await("process up")
	process, err := p.start(dir, out, syscall.SIGTERM, "pgbouncer", file)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		process.end()
		_ = os.RemoveAll(dir) // in a temporary directory
		if tb.Failed() {
			tb.Logf("pgbouncer wrote:\n%s", out)
		}
	})
	if err := process.await(ready); err != nil {
		tb.Fatalf("pgbouncer did not start: %v\n%s", err, out)
	}
	return "postgres:///" + database + "?" + url.Values{"user": {superuser}, "host": {dir}, "port": {"6432"},
		"sslmode": {"disable"}}.Encode()
}

// NewPool creates a database as NewDatabase does, behind pgbouncer. It returns the URL of the pool, and the direct URL
// for what a pool in transaction mode cannot do.
func NewPool(tb testing.TB) (pool, direct string) {
	tb.Helper()
	direct = NewDatabase(tb)
	u, err := url.Parse(direct)
	if err != nil {
		tb.Fatal(err)
	}
	return shared.cluster.Pool(tb, strings.TrimPrefix(u.Path, "/")), direct
}

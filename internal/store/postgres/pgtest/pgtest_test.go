//go:build postgres

package pgtest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The tests of a binary share a server and nothing else.
func TestDatabasesAreApart(t *testing.T) {
	a, b := NewDatabase(t), NewDatabase(t)
	if a == b {
		t.Fatalf("both are %s", a)
	}
	psql(t, a, "CREATE TABLE t (n int)")
	if got := psql(t, b, "SELECT count(*) FROM pg_tables WHERE tablename = 't'"); got != "0" {
		t.Errorf("a table of one database is in the other %s times", got)
	}
	Clear(t, a)
	if got := psql(t, a, "SELECT count(*) FROM pg_tables WHERE tablename = 't'"); got != "0" {
		t.Errorf("a table is %s times in a database that was cleared", got)
	}
}

// psql runs SQL through a URL, like a client.
func psql(t *testing.T, url, sql string) string {
	t.Helper()
	p, err := find("psql")
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.command("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c",
		sql).CombinedOutput()
	if err != nil {
		t.Fatalf("psql %s: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Acknowledged commits survive the primary: first on its own disk, then on the standby.
func TestKillAndPromote(t *testing.T) {
	c := Start(t, Options{Standby: true})
	url := c.CreateDatabase(t, "kept")
	psql(t, url, "CREATE TABLE t (n int)")
	psql(t, url, "INSERT INTO t VALUES (1)")
	c.Kill(t)
	c.Restart(t)
	if got := psql(t, url, "SELECT sum(n) FROM t"); got != "1" {
		t.Errorf("after the restart the sum is %s", got)
	}
	for round := range 2 { // each server is the primary once
		psql(t, url, "INSERT INTO t VALUES (10)")
		c.Kill(t)
		c.Promote(t)
		if got, want := psql(t, url, "SELECT sum(n) FROM t"), []string{"11", "21"}[round]; got != want {
			t.Errorf("the standby has the sum %s after failover %d, want %s", got, round, want)
		}
		c.AddStandby(t)
		if got := c.Exec(t, "postgres", "SELECT sync_state FROM pg_stat_replication"); got != "sync" {
			t.Errorf("the new standby is %q", got)
		}
	}
	// Commits wait for the standby.
	c.KillStandby(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := c.primary.sql("kept", "INSERT INTO t VALUES (100)"); err != nil {
			t.Error(err)
		}
	}()
	for c.Exec(t, "postgres", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") != "1" {
		select {
		case <-done:
			t.Fatal("a commit does not wait for the standby")
		default:
		}
	}
	c.RestartStandby(t)
	<-done
}

// A pool in transaction mode may run two transactions of a client on two servers, so session state is lost between
// them.
func TestPool(t *testing.T) {
	pool, direct := NewPool(t)
	psql(t, pool, "CREATE TABLE t (n int)")
	if got := psql(t, direct, "SELECT count(*) FROM t"); got != "0" {
		t.Errorf("the pool leads elsewhere: %s", got)
	}
	if got := psql(t, pool, "SELECT current_setting('application_name')"); got == "" {
		t.Error("the pool's server has no application name")
	}
}

const childVariable = "PGTEST_CHILD"

// A test process that is killed leaves neither a server nor its files.
func TestNothingIsLeft(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		c := Start(t, Options{})
		os.Stdout.WriteString(c.primary.dir + "\n")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestNothingIsLeft$")
	cmd.Env = append(os.Environ(), childVariable+"=1")
	out, _ := cmd.Output() // it kills itself
	dir, _, _ := bytes.Cut(out, []byte("\n"))
	if len(dir) == 0 {
		t.Fatalf("the child wrote %q", out)
	}
	// The watcher's last step removes the directory.
	wait := exec.CommandContext(t.Context(), "/bin/sh", "-c", `while [ -e "$1" ]; do sleep 0.1; done`, "wait",
		string(dir))
	if err := wait.Run(); err != nil {
		t.Error(err)
	}
}

// If a program is missing, the error explains what to do.
func TestMissingPrograms(t *testing.T) {
	_, err := find("initdb", "no-such-program")
	if err == nil || !strings.Contains(err.Error(), "no-such-program") ||
		!strings.Contains(err.Error(), "make test-all STEPS=postgres") {
		t.Errorf("got %v", err)
	}
}

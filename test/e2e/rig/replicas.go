package rig

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
)

// Replicas is the environment variable that determines the store of the daemons under test. If it is unset, each daemon
// uses a data directory. If it is a number, each daemon consists of that many replicas that share a PostgreSQL
// database. Each request of a test then goes to a random replica, and the replicas start and end together.
const Replicas = "RECURGENTD_TEST_REPLICAS"

// OnDisk skips a test that needs daemons with a data directory. why is the reason.
func OnDisk(t *testing.T, why string) {
	t.Helper()
	if replicas(t) > 0 {
		t.Skipf("with a database: %s", why)
	}
}

// Store returns the kind of store of the daemons under test: "postgres" or "disk".
func Store(t *testing.T) string {
	t.Helper()
	if replicas(t) > 0 {
		return "postgres"
	}
	return "disk"
}

// replicas returns the number of replicas that share a database, or 0 if daemons use a data directory.
func replicas(t *testing.T) int {
	t.Helper()
	text := os.Getenv(Replicas)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number of replicas", Replicas, text)
	}
	return n
}

// share gives the daemon a database and other replicas to share it with, as the variable Replicas demands. It does
// nothing if the variable is unset.
func (d *Daemon) share() {
	d.T.Helper()
	n := replicas(d.T)
	if n == 0 {
		return
	}
	d.database = pgtest.NewDatabase(d.T)
	d.own = []string{"RECURGENT_STORE=" + d.database}
	if n == 1 {
		return
	}
	d.HTTP = &http.Client{Transport: apitest.Over(d.T, spread{d, http.DefaultTransport.(*http.Transport).Clone()})}
	ca := apptest.NewAuthority(d.T)
	for i := range n {
		dir := d.T.TempDir()
		cert, key := ca.Pair(d.T, int64(i+2)).Write(d.T, dir)
		own := []string{"RECURGENT_STORE=" + d.database, "RECURGENT_SECRETS_KEY_FILE=" + filepath.Join(d.State(),
			"secrets.key"), "RECURGENT_ADVERTISE=127.0.0.1:0", "RECURGENT_CLUSTER_CA=" + ca.Write(d.T, dir),
			"RECURGENT_CLUSTER_CERT=" + cert, "RECURGENT_CLUSTER_KEY=" + key}
		if i == 0 {
			d.own = own
			continue
		}
		own = append(own, "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "xdg"))
		d.others = append(d.others, &Daemon{T: d.T, Dir: dir, own: own, Output: d.Output})
	}
}

// Look calls read with a directory of the stored files: the data directory of the daemon, which is stopped meanwhile,
// or a copy of its database in the same format.
func (d *Daemon) Look(read func(dir string)) {
	d.T.Helper()
	if d.database != "" {
		read(d.copied())
		return
	}
	d.Stop(syscall.SIGTERM)
	read(d.State())
	d.Start()
}

// Stored returns the stored files by their slashed paths below the data directory. They are those of the daemon, which
// may be running, or of a copy of its database in the same format.
func (d *Daemon) Stored() map[string][]byte {
	d.T.Helper()
	dir := d.State()
	if d.database != "" {
		dir = d.copied()
	}
	all := below(d.T, dir)
	delete(all, "lock") // names the process that holds the directory
	return all
}

// Everything is Stored plus everything else that is left anywhere: the tables of the database, of which a copy takes
// only what is current, and the directories of its replicas.
func (d *Daemon) Everything() map[string][]byte {
	d.T.Helper()
	all := d.Stored()
	if d.database == "" {
		return all
	}
	all["database"] = pgtest.Dump(d.T, d.database)
	for i, one := range d.all() {
		for path, data := range below(d.T, one.State()) {
			all[fmt.Sprintf("replica %d/%s", i+1, path)] = data
		}
	}
	return all
}

// below returns the files below a directory by their slashed paths relative to it.
func below(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for path, data := range Files(t, dir) {
		all[strings.TrimPrefix(path, filepath.ToSlash(dir)+"/")] = data
	}
	return all
}

// Rows returns the fields that a query of the daemon's database prints. ok is false if the daemon has no database.
func (d *Daemon) Rows(sql string) (fields []string, ok bool) {
	d.T.Helper()
	if d.database == "" {
		return nil, false
	}
	return strings.Fields(pgtest.Query(d.T, d.database, sql)), true
}

// copied copies the database into a fresh directory and returns it.
func (d *Daemon) copied() (dir string) {
	d.T.Helper()
	dir = filepath.Join(d.T.TempDir(), "copy")
	d.store("copy", "database", dir)
	return dir
}

// Edit stops the daemon, calls change to modify its stored files, and starts it again.
func (d *Daemon) Edit(change func(dir string)) {
	d.T.Helper()
	d.Stop(syscall.SIGTERM)
	if d.database == "" {
		change(d.State())
	} else {
		dir := d.copied()
		change(dir)
		pgtest.Clear(d.T, d.database)
		d.store("copy", dir, "database")
	}
	d.Start()
}

// checkStored checks, at the end of a test, that the stored files are valid.
func (d *Daemon) checkStored() {
	d.T.Helper()
	if d.database != "" {
		d.store("verify")
		CheckStoredFiles(d.T, d.copied())
		return
	}
	CheckStoredFiles(d.T, d.State())
}

// store runs a store command on the database.
func (d *Daemon) store(args ...string) {
	d.T.Helper()
	env := append(Environment(d.Dir), d.own[0])
	if out, errs, code := Run(d.T, env, append([]string{"store"}, args...)...); code != 0 {
		d.T.Errorf("store %v: exit code %d: %s%s", args, code, out, errs)
	}
}

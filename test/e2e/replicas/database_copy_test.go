//go:build postgres

package replicas

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const secret = "cAnAry-of-the-connection"

// A life is what one namespace has seen before its store moves.
type life struct {
	namespace, session string
	replay             []byte // the body of a call with a key, and its reply
	reply              string
	archived           string // the audit entry of an operation that can be undone
}

// live has a namespace use everything that is stored.
func live(t *testing.T, d *rig.Daemon, namespace, source string) *life {
	t.Helper()
	l, x := &life{namespace: namespace}, d.In(namespace)
	x.Policy(map[string]any{"delegation_depth": 5})
	x.Do(http.StatusCreated, http.MethodPut, "/v1/connections/news",
		map[string]any{"description": "news", "hosts": []any{source}, "methods": []any{"GET"}, "roles": []any{"*"},
			"auth": map[string]any{"type": "bearer", "secret": secret}})
	x.Do(http.StatusCreated, http.MethodPut, "/v1/tools/clerk", map[string]any{"purpose": "serves people"})
	x.Do(http.StatusOK, http.MethodPut, rig.MethodPath("clerk", "given")+"/examples",
		map[string]any{"examples": []any{map[string]any{"args": []any{"a"}, "expect": map[string]any{"value": "a"}}}})
	l.session = x.Session("clerk", map[string]any{"context": map[string]any{"note": "ä\u2028<&>"}})
	judged := x.Call(l.session, "given", "a")
	x.WantValue(judged, "a", "generated")
	x.Call(l.session, "given", strings.Repeat("large", 80_000)) // kept as a file of the call
	x.WantValue(x.Call(l.session, "fetched", "http://"+source), []any{"a", "b"}, "generated")
	x.WantValue(x.Call(l.session, "deep"), 5, "generated") // with a call of another tool
	x.WantValue(x.Call(l.session, "may", "good"), "good", "generated")
	x.WantValue(x.Call(l.session, "may", "bad"), "fixed", "repaired")
	x.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+judged.CallID+"/verdict", map[string]any{"verdict": "right"})
	file := upload(x, strings.Repeat("line\n", 100_000))
	x.WantValue(x.Call(l.session, "copied", map[string]any{"$file": file}), 500_000, "generated")
	l.replay = []byte(`{"method":"given","args":["again"]}`)
	l.reply = string(x.Send(http.MethodPost, "/v1/sessions/"+l.session+"/calls", l.replay,
		map[string]string{"Idempotency-Key": "once"}).Body)
	x.Do(http.StatusCreated, http.MethodPut, "/v1/signatures/qa",
		map[string]any{"inputs": []any{map[string]any{"name": "q"}}, "outputs": []any{map[string]any{"name": "a"}}})
	gone := x.Session("clerk")
	x.Call(gone, "given", "forgotten")
	x.Do(http.StatusNoContent, http.MethodDelete, "/v1/sessions/"+gone, nil)
	x.Do(http.StatusCreated, http.MethodPut, "/v1/tools/old", map[string]any{"purpose": "archived"})
	x.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/old", nil)
	l.archived = fmt.Sprint(x.List("/v1/maintenance/audit")[0]["id"])
	return l
}

// goesOn checks that a daemon on a copy goes on where the original ended, without the model.
func (l *life) goesOn(t *testing.T, d *rig.Daemon, source string) {
	t.Helper()
	x := d.In(l.namespace)
	size := len(x.History(l.session))
	x.WantValue(x.Call(l.session, "given", "b"), "b", "persisted")
	x.WantValue(x.Call(l.session, "deep"), 5, "persisted")
	x.WantValue(x.Call(l.session, "may", "bad"), "fixed", "persisted")
	x.WantValue(x.Call(l.session, "fetched", "http://"+source), []any{"a", "b"}, "persisted") // the secret opens
	if got := len(x.History(l.session)); got != size+5 {                                      // with the one below deep
		t.Errorf("%d records after five calls, %d before", got, size)
	}
	again := x.Send(http.MethodPost, "/v1/sessions/"+l.session+"/calls", l.replay,
		map[string]string{"Idempotency-Key": "once"})
	if string(again.Body) != l.reply || again.Header.Get("Idempotent-Replayed") == "" {
		t.Errorf("the call of before the copy, with its key: %d %.300s, want %.300s", again.Status, again.Body, l.reply)
	}
	x.Do(http.StatusOK, http.MethodPost, "/v1/maintenance/audit/"+l.archived+"/undo", nil)
	x.Do(http.StatusOK, http.MethodGet, "/v1/tools/old", nil)
}

// command runs a command of the binary and wants it to succeed.
func command(t *testing.T, database string, args ...string) string {
	t.Helper()
	out, errs, code := rig.Run(t, append(rig.Environment(t.TempDir()), "RECURGENT_STORE="+database), args...)
	if code != 0 {
		t.Fatalf("recurgentd %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// What reads a database refuses one that holds no store, as one whose name was mistyped, and makes nothing in it.
func TestNoStoreIsMadeByReading(t *testing.T) {
	t.Parallel()
	database := pgtest.NewDatabase(t)
	for _, args := range [][]string{{"verify"}, {"export", filepath.Join(t.TempDir(), "archive.tar.gz")},
		{"copy", "database", filepath.Join(t.TempDir(), "copy")}} {
		out, errs, code := rig.Run(t, append(rig.Environment(t.TempDir()), "RECURGENT_STORE="+database),
			append([]string{"store"}, args...)...)
		if code != 1 || !strings.Contains(errs, "there is no store in this database") {
			t.Errorf("store %s: exit code %d\n%s%s", args[0], code, out, errs)
		}
	}
	if made := pgtest.Query(t, database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"); made != "0" {
		t.Errorf("%s tables were made", made)
	}
}

// A daemon's store moves from a directory into a database, by store copy, by the export of a daemon, by that of the
// database, and back into directories. Wherever it is a daemon says the same of everything, and goes on without asking
// the model.
func TestStoresMove(t *testing.T) {
	t.Parallel()
	source := rig.NewSource(t, rig.ItemsBody)
	guarded := rig.NewSource(t, "")
	guarded.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		source.Config.Handler.ServeHTTP(w, r)
	})
	copied := rig.Program("\tin, err := call.Open(call.Arg(0, \"file\"))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdata, err := io.ReadAll(in)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n"+
		"\tf, err := call.Create(\"copy.txt\", \"text/plain\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tif _, err := f.Write(data); err != nil {\n\t\treturn nil, err\n\t}\n\treturn len(data), nil", "io")
	m := rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}, "clerk.fetched": {rig.ProgFetches},
		"clerk.deep": {rig.ProgDelegates}, "calculator.add": {rig.ProgAdd},
		"clerk.may": {rig.ProgMayPanic, rig.ProgFixes, rig.ProgMayPanic, rig.ProgFixes}, "clerk.copied": {copied}})
	key := keyFile(t)
	args := []string{"--secrets-key-file", key, "--runners", "2", "--fetch-allow", guarded.Host()}
	spaces := []string{"", "acme"}

	first := rig.Start(t, m, args...)
	first.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/acme", nil)
	lives := []*life{live(t, first, "", guarded.Host()), live(t, first, "acme", guarded.Host())}
	want, trail, asked := answers(first, spaces...), actions(first), len(m.Questions())
	if code := first.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	database, other := pgtest.NewDatabase(t), pgtest.NewDatabase(t)
	command(t, database, "store", "copy", first.State(), "database")
	report := command(t, database, "store", "verify")
	if !strings.Contains(report, "2 sessions") || !strings.Contains(report, "audit trail of acme") {
		t.Errorf("store verify: %s", report)
	}
	second := on(t, m, database, key, "--fetch-allow", guarded.Host())
	same(t, "the database", answers(second, spaces...), want)
	if got := actions(second); !slices.Equal(got, trail) {
		t.Errorf("the audit trail of the database is %v, was %v", got, trail)
	}
	for _, l := range lives {
		l.goesOn(t, second, guarded.Host())
	}

	// Onward: by the daemon's export into another database, by the database's into a directory, by copy into another
	// one.
	archives := t.TempDir()
	byDaemon, byStore := filepath.Join(archives, "daemon.tar.gz"), filepath.Join(archives, "store.tar.gz")
	rig.WriteAt(t, byDaemon, string(second.Do(http.StatusOK, http.MethodGet, "/v1/maintenance/export", nil).Body))
	want = answers(second, spaces...)
	command(t, database, "store", "export", byStore)
	if code := second.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	command(t, other, "store", "import", byDaemon)
	third := on(t, m, other, key, "--fetch-allow", guarded.Host())
	same(t, "the second database", answers(third, spaces...), want)
	acme := answers(third, "acme")
	if code := third.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	command(t, other, "store", "verify")

	// One namespace alone, into a database that a daemon uses meanwhile.
	alone, beside := filepath.Join(archives, "acme.tar.gz"), pgtest.NewDatabase(t)
	command(t, other, "store", "export", "--namespace", "acme", alone)
	fourth := on(t, m, beside, key, "--fetch-allow", guarded.Host())
	fourth.Do(http.StatusCreated, http.MethodPut, "/v1/namespaces/beta", nil)
	command(t, beside, "store", "import", alone, "--namespace", "acme")
	same(t, "the namespace beside others", answers(fourth, "acme"), acme)
	there := fourth.In("acme")
	there.WantValue(there.Call(lives[1].session, "deep"), 5, "persisted")
	for name, fill := range map[string][]string{"by import": {"store", "import", byStore, "--data-dir"},
		"by copy": {"store", "copy", "database"}} {
		d := rig.Start(t, m, args...)
		d.Stop(syscall.SIGTERM)
		dir := filepath.Join(t.TempDir(), "state")
		command(t, database, append(fill, dir)...)
		command(t, "disk", "store", "verify", "--data-dir", dir)
		d.Args = append(d.Args, "--data-dir", dir)
		d.Start()
		same(t, "the directory "+name, answers(d, spaces...), want)
		x := d.In("acme")
		x.WantValue(x.Call(lives[1].session, "may", "bad"), "fixed", "persisted")
	}
	if got := len(m.Questions()); got != asked {
		t.Errorf("the model was asked %d times after the copy", got-asked)
	}
}

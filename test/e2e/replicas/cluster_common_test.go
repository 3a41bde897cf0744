//go:build postgres

package replicas

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/app/apptest"
	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Programs: one counts in the context, one waits for the gate first.
const (
	count = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n + 1, nil\n}\n"
	wait  = "package tool\n\nimport \"recurgent\"\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tif _, err := call.Fetch(\"http://GATE/\"); err != nil {\n\t\treturn nil, err\n\t}\n\tn, _ := call.Context[\"n\"].(float64)\n\tcall.Context[\"n\"] = n + 1\n\treturn n + 1, nil\n}\n"
)

// replicas starts n daemons on one database, with the methods counter.next and counter.wait, which waits for the gate.
func countingReplicas(t *testing.T, n int) (all []*rig.Daemon, gate *apptest.Gate) {
	t.Helper()
	gate = apptest.NewGate(t)
	all = replicasOn(t, pgtest.NewDatabase(t), n, nil, "--provider", "replay", "--fetch-allow", gate.Host)
	for method, code := range map[string]string{"next": count, "wait": strings.ReplaceAll(wait, "GATE", gate.Host)} {
		all[0].Do(http.StatusOK, "PUT", rig.MethodPath("counter", method), map[string]any{"code": code})
	}
	return all, gate
}

// replicasOn starts n daemons on the database, with the model behind them where there is one.
func replicasOn(t *testing.T, database string, n int, m *rig.Model, args ...string) (all []*rig.Daemon) {
	t.Helper()
	ca := apptest.NewAuthority(t)
	for i := range n {
		dir := t.TempDir()
		cert, key := ca.Pair(t, int64(i+2)).Write(t, dir)
		args := append([]string{"--advertise", "127.0.0.1:0", "--cluster-ca", ca.Write(t, dir), "--cluster-cert", cert,
			"--cluster-key", key, "--runners", "1"}, args...)
		all = append(all, rig.StartIn(t, m, []string{"RECURGENT_STORE=" + database}, args...))
	}
	return all
}

// next makes the counting call at the replica, again while it is answered 503 with Retry-After.
func next(d *rig.Daemon, session string) rig.Response {
	d.T.Helper()
	pause := time.NewTicker(10 * time.Millisecond) // daemons that run beside it need the processors, too
	defer pause.Stop()
	for ; ; <-pause.C {
		r := d.Send("POST", "/v1/sessions/"+session+"/calls", []byte(`{"method":"next"}`),
			map[string]string{"Content-Type": "application/json"})
		if r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
			return r
		}
	}
}

// want demands that the response is the value of an ok call.
func want(t *testing.T, r rig.Response, value int) {
	t.Helper()
	if r.Status != http.StatusOK || !strings.Contains(string(r.Body), fmt.Sprintf(`"value":%d`, value)) {
		t.Errorf("%d %s, want the value %d", r.Status, r.Body, value)
	}
}

// signal sends the signal to the daemon's process.
func signal(d *rig.Daemon, s syscall.Signal) {
	d.T.Helper()
	if err := d.Cmd.Process.Signal(s); err != nil {
		d.T.Fatal(err)
	}
}

// freeze stops the daemon's process. Its threads run on for a while after the signal was sent, long enough to take a
// connection: it waits for all of them.
func freeze(d *rig.Daemon) {
	d.T.Helper()
	signal(d, syscall.SIGSTOP)
	rig.Until(d.T, "all threads of the replica are stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", d.Cmd.Process.Pid))
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			if err == nil && !strings.Contains(string(stat), ") T ") {
				return false
			}
		}
		return err == nil && len(threads) > 0
	})
}

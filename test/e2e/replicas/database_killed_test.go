//go:build postgres

package replicas

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/store/postgres/pgtest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A single daemon on a database that is killed answers for its sessions at once when it is started again, though its
// former self still counts as alive; what that one had begun does not come back.
func TestKilledDaemonGoesOnAtOnce(t *testing.T) {
	t.Parallel()
	d := on(t, rig.NewModel(t, rig.Script{"clerk.given": {rig.ProgGiven}}), pgtest.NewDatabase(t), keyFile(t))
	session := d.Session("clerk")
	d.WantValue(d.Call(session, "given", "a"), "a", "generated")
	for range 2 {
		d.Stop(syscall.SIGKILL)
		d.Start()
		d.WantValue(d.Call(session, "given", "b"), "b", "persisted") // the first request
		if r := d.Send(http.MethodPatch, "/v1/sessions/"+session+"/context", []byte(`{"a":1}`),
			map[string]string{"Content-Type": "application/merge-patch+json"}); r.Status != http.StatusOK {
			t.Errorf("a change of its context: %d %s", r.Status, r.Body)
		}
	}
	if n := len(d.History(session)); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

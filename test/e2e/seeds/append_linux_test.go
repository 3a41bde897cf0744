package seeds

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 000:363: the append success rate. A call whose commit fails on a full disk is counted as failed and has no line in the
// call log; the daemon's own log says that nothing was appended.
func TestSeed000Line363(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	s := d.Session("calculator")
	first := d.Call(s, "add", 1, 2)
	const appends = `recurgent_history_appends_total{result="`
	if ok, failed := d.Metric(appends+`ok"}`), d.Metric(appends+`failed"}`); ok != 1 || failed != 0 {
		t.Fatalf("%v appended and %v not before the disk is full", ok, failed)
	}
	var was unix.Rlimit
	if err := unix.Prlimit(d.Cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(most uint64) {
		if err := unix.Prlimit(d.Cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: was.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	body := rig.Encode(t, object{"method": "add", "args": []any{3, 4}})
	lost := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, nil)
	if lost.Status != http.StatusServiceUnavailable {
		t.Errorf("a call that cannot be kept: status %d: %s", lost.Status, lost.Body)
	}
	limit(was.Cur)
	if failed := d.Metric(appends + `failed"}`); failed != 1 {
		t.Errorf("%v appends are counted as failed, want 1", failed)
	}
	if out := d.Output.String(); strings.Count(out, `"history_record_appended":false`) != 1 || !strings.Contains(out, s) {
		t.Errorf("the daemon's log says nothing of it, or says it twice:\n%s", out)
	}
	rig.Until(t, "the store takes calls again", func() bool {
		return d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, nil).Status == http.StatusOK
	})
	calls, records := d.List("/v1/calls"), d.History(s)
	if len(calls) != 2 || len(records) != 2 || records[0]["call_id"] != first.CallID {
		t.Errorf("%d calls and %d records, want 2 each: %v", len(calls), len(records), calls)
	}
	for _, c := range calls {
		if c["history_record_appended"] != true {
			t.Errorf("%v is in the log without a record", c["call_id"])
		}
	}
}

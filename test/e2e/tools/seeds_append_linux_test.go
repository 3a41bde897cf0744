package tools

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 000:363: the append success rate. A call whose commit fails on a full disk is counted as failed and has no line in
// the call log; the daemon's own log says that nothing was appended.
func TestSeed000Line363(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	log := byPipe(d)
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
		if err := unix.Prlimit(d.Cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: most, Max: was.Max},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	body := rig.Encode(t, object{"method": "add", "args": []any{3, 4}})
	// where the store finds the disk full before the call's commit, the call is refused and leaves nothing
	rig.Until(t, "a call is lost", func() bool {
		limit(1)
		lost := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, nil)
		limit(was.Cur)
		if lost.Status != http.StatusServiceUnavailable {
			t.Fatalf("a call that cannot be kept: status %d: %s", lost.Status, lost.Body)
		}
		return d.Metric(appends+`failed"}`) > 0
	})
	if failed := d.Metric(appends + `failed"}`); failed != 1 {
		t.Errorf("%v appends are counted as failed, want 1", failed)
	}
	const says = `"history_record_appended":false`
	rig.Until(t, "the daemon's log says so", func() bool { return strings.Contains(log.String(), says) })
	rig.Until(t, "the store takes calls again", func() bool {
		return d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", body, nil).Status == http.StatusOK
	})
	if out := log.String(); strings.Count(out, says) != 1 || !strings.Contains(out, s) {
		t.Errorf("the daemon's log says it twice, or not of what:\n%s", out)
	}
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

// byPipe restarts the daemon with a pipe for its log, which no limit of files bounds.
func byPipe(d *rig.Daemon) *rig.Buffer {
	d.T.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		d.T.Fatal(err)
	}
	log := &rig.Buffer{}
	go func() {
		_, _ = io.Copy(log, reader) // to the daemon's end
		_ = reader.Close()
	}()
	d.Log = writer
	d.Restart()
	if err := writer.Close(); err != nil { // the daemon has its own
		d.T.Error(err)
	}
	return log
}

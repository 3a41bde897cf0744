package daemon

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/cli"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func anySlice(list []map[string]any) any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// patientStop has a daemon stop when its calls have ended, and not before.
const patientStop = rig.StopTime + "=1h"

// SIGTERM lets calls under way end, refuses new ones, and the daemon stops cleanly; what was interrupted is
// recorded as canceled and counts for nothing.
func TestSigtermDrains(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"slow.answer": {rig.Held(rig.ProgAdd)}, "slow.never": {rig.Held(rig.ProgAdd)}})
	d := rig.StartIn(t, m, []string{patientStop})
	s := d.Session("slow")
	type result struct {
		r   rig.Response
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls",
			rig.MustJSON(map[string]any{"method": "answer", "args": []any{1, 2}}), nil)
		done <- result{r, err}
	}()
	rig.Until(t, "the model to be asked", func() bool { return m.Count("slow", "answer") == 1 })
	if err := d.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, "readyz to go down", func() bool {
		r, err := d.Try(context.Background(), http.MethodGet, "/readyz", nil, nil)
		return err == nil && r.Status == http.StatusServiceUnavailable
	})
	m.Release()
	got := <-done
	if got.err != nil || got.r.Status != http.StatusOK {
		t.Errorf("the call under way: %v, %d %s", got.err, got.r.Status, got.r.Body)
	} else {
		var r rig.Reply
		got.r.Into(t, &r)
		d.WantValue(r, 3, "generated")
	}
	if code := d.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	d.Start()
	if n := len(d.History(s)); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	d.WantValue(d.Call(s, "answer", 2, 2), 4, "persisted")
}

// A call that does not end by itself is ended with the daemon, as canceled, and recorded.
func TestSigtermEndsWhatDoesNotEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on deadlines of real programs")
	}
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"slow.never": {rig.Held(rig.ProgAdd)}})
	d := rig.Start(t, m)
	s := d.Session("slow")
	done := make(chan struct{})
	go func() {
		defer close(done)
		// ends as it may
		_, _ = d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls",
			[]byte(`{"method":"never","args":[1,2]}`), nil)
	}()
	rig.Until(t, "the model to be asked", func() bool { return m.Count("slow", "never") == 1 })
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	<-done
	m.Release()
	d.Start()
	records := d.History(s)
	if len(records) != 1 || records[0]["error_type"] != "canceled" {
		t.Errorf("records: %v", records)
	}
}

// A second SIGTERM ends the daemon at once.
func TestSecondSigtermIsImmediate(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"slow.never": {rig.Held(rig.ProgAdd)}})
	d := rig.StartIn(t, m, []string{patientStop})
	s := d.Session("slow")
	go func() {
		// is cut off
		_, _ = d.Try(context.Background(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"never"}`),
			nil)
	}()
	rig.Until(t, "the model to be asked", func() bool { return m.Count("slow", "never") == 1 })
	_ = d.Cmd.Process.Signal(syscall.SIGTERM)
	rig.Until(t, "readyz to go down", func() bool {
		r, err := d.Try(context.Background(), http.MethodGet, "/readyz", nil, nil)
		return err != nil || r.Status == http.StatusServiceUnavailable
	})
	if code := d.Stop(syscall.SIGTERM); code != cli.ExitFailed {
		t.Errorf("exit code %d, want %d", code, cli.ExitFailed)
	}
	m.Release()
}

// A call whose client hangs up is canceled and recorded once, and counts against no program.
func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"slow.answer": {rig.Held(rig.ProgAdd)}})
	d := rig.Start(t, m)
	s := d.Session("slow")
	ctx, hangUp := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// is cut off
		_, _ = d.Try(ctx, http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"answer","args":[1,2]}`), nil)
	}()
	rig.Until(t, "the model to be asked", func() bool { return m.Count("slow", "answer") == 1 })
	hangUp()
	<-done
	rig.Until(t, "the record", func() bool { return len(d.History(s)) == 1 })
	if r := d.History(s)[0]; r["error_type"] != "canceled" {
		t.Errorf("record: %v", r)
	}
	m.Release()
	d.WantValue(d.Call(s, "answer", 1, 2), 3, "")
}

// A terminal that closes stops the daemon as cleanly as SIGTERM does.
func TestSighupStopsCleanly(t *testing.T) {
	t.Parallel()
	if signal.Ignored(syscall.SIGHUP) {
		return // under nohup the daemon is to live on
	}
	d := rig.Start(t, nil)
	if code := d.Stop(syscall.SIGHUP); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// If the reader of the log ends before the daemon does, calls go on, and the daemon stops cleanly.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &rig.Daemon{T: t, Dir: dir, Output: rig.NewOutput(t), HTTP: apitest.Client(t), Env: rig.Environment(dir)}
	d.HTTP.Timeout = rig.Patience
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.Args, d.Log = []string{"--log-level", "debug"}, writer
	d.Start()
	t.Cleanup(func() { d.Stop(syscall.SIGKILL) })
	if err := errors.Join(reader.Close(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	s := d.Session("calculator")
	for range 3 {
		d.WantValue(d.Call(s, "add", 1, 2), 3, "")
	}
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

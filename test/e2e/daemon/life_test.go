package daemon

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"strings"
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

// hungUp sends a request and hangs up once ready holds.
func hungUp(d *rig.Daemon, path string, body object, header map[string]string, what string, ready func() bool) {
	d.T.Helper()
	ctx, hangUp := context.WithCancel(d.T.Context())
	done := make(chan error, 1)
	go func() {
		_, err := d.Try(ctx, http.MethodPost, path, rig.MustJSON(body), header)
		done <- err
	}()
	rig.Until(d.T, what, ready)
	hangUp()
	if err := <-done; !errors.Is(err, context.Canceled) {
		d.T.Errorf("%s: the client that hung up has %v", path, err)
	}
}

// A call for which a model writes goes on when its client hangs up: it is recorded once, its program is kept, and the
// same request again is answered with its reply. Neither that nor a later call asks the model.
func TestForgeOutlivesAClientThatHangsUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path func(session string) string
		body func(session string) object
	}{
		"a call": {func(s string) string { return "/v1/sessions/" + s + "/calls" },
			func(string) object { return object{"method": "answer", "args": []any{1, 2}} }},
		"a function": {func(string) string { return "/v1/functions/call_method" }, func(s string) object {
			return object{"session_id": s,
				"arguments": object{"role": "slow", "method": "answer", "args": []any{1, 2}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := rig.NewModel(t, rig.Script{"slow.answer": {rig.Held(rig.ProgAdd)}})
			defer m.Release()
			d := rig.Start(t, m)
			s := d.Session("slow")
			path, body, key := c.path(s), c.body(s), map[string]string{"Idempotency-Key": "one"}
			hungUp(d, path, body, key, "the model to be asked", func() bool { return m.Count("slow", "answer") == 1 })
			if r := d.Send(http.MethodPost, path, rig.MustJSON(body), key); r.Status != http.StatusConflict {
				t.Errorf("the same request while the first is under way: %d %s", r.Status, r.Body)
			}
			m.Release()
			rig.Until(t, "the record", func() bool { return len(d.History(s)) == 1 })
			id := d.History(s)[0]["call_id"]
			rig.Until(t, "the reply of the call that was left", func() bool {
				r := d.Send(http.MethodPost, path, rig.MustJSON(body), key)
				return r.Status == http.StatusOK && r.Header.Get("Idempotent-Replayed") == "true" &&
					r.Object(t)["call_id"] == id && strings.Contains(string(r.Body), `"value":3`)
			})
			d.WantValue(d.Call(s, "answer", 40, 2), 42, "persisted")
			if n := m.Count("slow", "answer"); n != 1 || len(d.History(s)) != 2 {
				t.Errorf("%d requests to the model, %d records", n, len(d.History(s)))
			}
		})
	}
}

// A call whose client hangs up while a program runs is canceled and recorded once, and counts against no program.
func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"slow.spins": {progSpins}}))
	s := d.Session("slow")
	d.WantValue(d.Call(s, "spins", false), 1, "generated")
	hungUp(d, "/v1/sessions/"+s+"/calls", object{"method": "spins", "args": []any{true}}, nil, "the call to run",
		func() bool { return len(d.List("/v1/calls?status=running")) == 1 })
	rig.Until(t, "the record", func() bool { return len(d.History(s)) == 2 })
	if r := d.History(s)[1]; r["error_type"] != "canceled" {
		t.Errorf("record: %v", r)
	}
	if a := d.Artifact("slow", "spins"); a["failure_count"] != 0.0 || a["success_count"] != 1.0 {
		t.Errorf("artifact: %v", a)
	}
	d.WantValue(d.Call(s, "spins", false), 1, "persisted")
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

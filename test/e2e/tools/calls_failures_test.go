package tools

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

func respondStatus(n int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(n) }
}

func respondBody(s string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { fmt.Fprint(w, s) }
}

// cutOff breaks the connection in the middle of an answer.
func cutOff(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, "half")
	panic(http.ErrAbortHandler)
}

// The labelled corpus, driven through the real daemon. Classes come
// from evidence; extrinsic, authored and interrupted calls never touch health.
func TestLabelledFailures(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on deadlines of real programs")
	}
	t.Parallel()
	f, gate := rig.NewSource(t, rig.ItemsBody), make(chan struct{})
	arrived := make(chan struct{}, 8)
	hang := func(http.ResponseWriter) { <-gate }
	notify := func(w http.ResponseWriter) {
		arrived <- struct{}{}
		hang(w)
	}
	t.Cleanup(func() { close(gate) }) // before the site is closed, which waits for its answers
	closed := deafPort(t)
	const unknown = "no-such-host.invalid"
	corpus := labelled(f.URL, "http://"+closed, "http://"+unknown+"/", hang)
	if len(corpus) < 60 {
		t.Fatalf("%d labelled failures, want at least 60", len(corpus))
	}
	waits := labelledFailure{name: "waits", code: fetchingX(f.URL, listens)}
	programs := rig.Script{"helper.list": {rig.Program(
		"\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn map[string]any{\"a\": 1}, nil\n\t}\n\treturn []any{1}, nil")},
		"f.waits": {waits.code}}
	for _, c := range corpus {
		programs["f."+c.name] = []any{c.code}
	}
	d := rig.Start(t, rig.NewModel(t, programs), "--call-timeout", "6s", "--fetch-allow",
		f.Host()+","+closed+","+unknown)
	d.Policy(map[string]any{"guardrail_recovery_budget": 0, "execution_repair_budget": 0, "outcome_repair_budget": 0})
	s := d.Session("f")
	for _, c := range corpus {
		f.Body(rig.ItemsBody)
		before := serveAndPin(d, s, c)
		if c.answer != nil {
			f.Answer(c.answer)
		}
		got := d.Invoke(s, c.request("bad"))
		if got.Outcome.OK || !slices.Contains(strings.Fields(c.types), got.Outcome.ErrorType) {
			t.Errorf("%s: ended in %+v, want %s", c.name, got.Outcome, c.types)
		}
		if got.Outcome.Authored != (c.class == "authored" || got.Outcome.ErrorType == "parse_failed" ||
			got.Outcome.ErrorType == "fetch_failed") {
			t.Errorf("%s: authored %v", c.name, got.Outcome.Authored)
		}
		wantClass(d, c, got.CallID, before)
	}
	f.Body(rig.ItemsBody)
	interruptions(d, s, waits, func() { f.Answer(notify) }, arrived)
}

// interruptions cuts off calls that wait for the network: a client that goes, a cancellation, a shutdown.
func interruptions(d *rig.Daemon, s string, c labelledFailure, hang func(), arrived <-chan struct{}) {
	d.T.Helper()
	before := serveAndPin(d, s, c)
	hang()
	running := func() string {
		for _, e := range d.Get("/v1/calls?status=running")["data"].([]any) {
			return e.(map[string]any)["call_id"].(string)
		}
		return ""
	}
	for _, cut := range []struct {
		name string
		by   func(hangUp func(), id string)
	}{
		{"client gone", func(hangUp func(), _ string) { hangUp() }},
		{"canceled", func(_ func(), id string) {
			d.Do(http.StatusNoContent, http.MethodPost, "/v1/calls/"+id+"/cancel",
				nil)
		}},
		{"shutdown", func(func(), string) { _ = d.Cmd.Process.Signal(syscall.SIGTERM) }},
	} {
		ctx, hangUp := context.WithCancel(d.T.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			// is cut off
			_, _ = d.Try(ctx, http.MethodPost, "/v1/sessions/"+s+"/calls", rig.MustJSON(c.request("bad")), nil)
		}()
		select {
		case <-arrived:
		case <-time.After(rig.Patience):
			d.T.Fatalf("%s: the call did not get to its fetch", cut.name)
		}
		id := running()
		cut.by(hangUp, id)
		<-done
		hangUp()
		if cut.name == "shutdown" {
			if code := d.Wait(); code != 0 {
				d.T.Errorf("exit code %d", code)
			}
			d.Start()
		}
		rig.Until(d.T, "the record of "+cut.name, func() bool {
			r := d.History(s)
			return r[len(r)-1]["call_id"] == id
		})
		var e map[string]any
		rig.Until(d.T, "the end of "+cut.name, func() bool { // it has its record for a moment before it counts as ended
			e = d.Get("/v1/calls/" + id)
			return e["outcome_status"] != "running"
		})
		if e["outcome_error_type"] != "canceled" {
			d.T.Errorf("%s: ended in %v", cut.name, e["outcome_error_type"])
		}
		c.name = "waits" // the class of all three is none
		wantClass(d, c, id, before)
	}
}

func (c *labelledFailure) request(x string) map[string]any {
	r := map[string]any{"method": c.name, "args": []any{x}}
	if c.contract != nil {
		r["contract"] = map[string]any{"deliverable": c.contract}
	}
	if x == "bad" && c.timeout > 0 {
		r["timeout_ms"] = c.timeout
	}
	return r
}

// serveAndPin has the program serve once and pins it. It returns the artifact, nil for a program that is not let in.
func serveAndPin(d *rig.Daemon, s string, c labelledFailure) map[string]any {
	d.T.Helper()
	if c.refused {
		return nil
	}
	if got := d.Invoke(s, c.request("ok")); !got.Outcome.OK {
		d.T.Fatalf("%s: did not serve: %+v", c.name, got.Outcome)
	}
	return d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("f", c.name)+"/pin", map[string]any{}).Object(d.T)
}

// wantClass checks the class on the call's log line, and what of it counts for the program's health.
func wantClass(d *rig.Daemon, c labelledFailure, callID string, before map[string]any) {
	d.T.Helper()
	if e := d.Get("/v1/calls/" + callID); e["failure_class"] != c.class {
		d.T.Errorf("%s: class %q, want %q (%v: %v)", c.name, e["failure_class"], c.class, e["outcome_error_type"],
			e["outcome_error_message"])
	}
	if before == nil {
		if r := d.Send(http.MethodGet, rig.MethodPath("f", c.name), nil, nil); r.Status != http.StatusNotFound {
			d.T.Errorf("%s: a program was kept: %d", c.name, r.Status)
		}
		return
	}
	after := d.Get(rig.MethodPath("f", c.name))
	counts := map[string]any{"intrinsic_failure_count": 0, "adaptive_failure_count": 0, "extrinsic_failure_count": 0,
		"authored_error_count": 0}
	rate, failures := 0.0, 0
	switch c.class {
	case "intrinsic", "adaptive":
		counts[c.class+"_failure_count"], rate, failures = 1, 0.5, 1
	case "extrinsic":
		counts["extrinsic_failure_count"], failures = 1, 1
	case "authored":
		counts["authored_error_count"] = 1
	}
	counts["failure_count"], counts["recent_failure_rate"], counts["success_count"] = failures, rate, 1
	for k, v := range counts {
		if !rig.Equal(v, after[k]) {
			d.T.Errorf("%s: %s is %v, want %v", c.name, k, after[k], v)
		}
	}
	for _, listed := range d.List("/v1/tools/f/methods") {
		if listed["method_name"] == c.name && !rig.Equal(counts["authored_error_count"],
			listed["authored_error_count"]) {
			d.T.Errorf("%s: the list has %v authored errors, want %v", c.name, listed["authored_error_count"],
				counts["authored_error_count"])
		}
	}
	if after["lifecycle_state"] != before["lifecycle_state"] || after["repair_count_since_regen"] != 0.0 {
		d.T.Errorf("%s: %v after %v, %v repairs", c.name, after["lifecycle_state"], before["lifecycle_state"],
			after["repair_count_since_regen"])
	}
}

// deafPort is an address that is taken and where nobody listens, so that connections to it are refused for as long as
// the test runs.
func deafPort(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

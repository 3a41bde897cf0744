package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// time.Sleep moves the program's clock, in both engines, and live runs would wait for it: there a sleep that cannot end
// in time ends the run at once, by the program's fault, unless its caller grants less than a second. How long a run
// waits is a matter of TestSleep in internal/runtime/sandbox, which has a clock of its own.
func TestSleepsInCalls(t *testing.T) {
	t.Parallel()
	naps := rig.Program("\tms, _ := call.Arg(0, \"ms\").(float64)\n\td, err := time.ParseDuration(strconv.Itoa(int(ms)) + \"ms\")\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tbefore := time.Now()\n\ttime.Sleep(d)\n\treturn time.Since(before).Milliseconds(), nil", "time", "strconv")
	for _, engine := range []string{"go", "yaegi"} {
		m := rig.NewModel(t, rig.Script{"f.nap": {naps}})
		d := rig.Start(t, m, "--engine", engine)
		s := d.Session("f")
		nap := d.Call(s, "nap", 120)
		d.WantValue(nap, 120.0, "generated")
		if replay := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+nap.CallID+"/replay",
			map[string]any{}).Object(t); replay["equal"] != true {
			t.Errorf("%s: a replay: %v", engine, replay)
		}
		d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("f", "nap")+"/pin", map[string]any{})
		try := d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("f", "nap")+"/try",
			map[string]any{"args": []any{3_600_000}}).Object(t)
		if !rig.Equal(3_600_000.0, try["outcome"].(map[string]any)["value"]) {
			t.Errorf("%s: a try sleeps: %v", engine, try)
		}
		for _, c := range []struct {
			ms, timeout int
			class, says string
		}{{31_000, 0, "intrinsic", "30s more"}, {29_500, 29_000, "intrinsic", "would not end within the call's time"},
			{29_500, 500, "extrinsic", "would not end within the call's time"}} {
			body := map[string]any{"method": "nap", "args": []any{c.ms}}
			if c.timeout > 0 {
				body["timeout_ms"] = c.timeout
			}
			got := d.Invoke(s, body)
			d.WantError(got, "timeout")
			if line := d.LogOf(got); line["failure_class"] != c.class ||
				!strings.Contains(got.Outcome.ErrorMessage, c.says) {
				t.Errorf("%s: %d ms: %+v of class %v, want %s", engine, c.ms, got.Outcome, line["failure_class"],
					c.class)
			} else if got.Outcome.Retriable || line["outcome_retriable"] == true {
				t.Errorf("%s: %d ms: another try is said to help: %+v", engine, c.ms, got.Outcome)
			}
		}
	}
}

// A program that does not end within its callers' time fails, and is not replaced in a call of one of them: three in a
// row are repaired, with what is known.
func TestOverrunsAreRepairedLater(t *testing.T) {
	t.Parallel()
	naps := rig.Program("\tms, _ := call.Arg(0, \"ms\").(float64)\n\ttime.Sleep(time.Duration(ms) * time.Millisecond)\n\treturn ms, nil", "time")
	m := rig.NewModel(t, rig.Script{"f.nap": {naps, rig.Program("\treturn call.Arg(0, \"ms\"), nil")},
		"f.first": {naps}})
	d := rig.Start(t, m)
	s := d.Session("f")
	call := func(method string) rig.Reply {
		return d.Invoke(s, map[string]any{"method": method, "args": []any{29_500}, "timeout_ms": 29_000})
	}
	d.WantValue(d.Call(s, "nap", 1), 1.0, "generated")
	for range 3 {
		d.WantError(call("nap"), "timeout")
	}
	if n := m.Count("f", "nap"); n != 1 {
		t.Errorf("%d requests before three failures", n)
	}
	d.WantValue(call("nap"), 29_500.0, "repaired")
	if asked := m.LastQuestion().User; !strings.Contains(asked, "would not end within the call") {
		t.Errorf("the repair does not know:\n%s", asked)
	}
	d.WantError(call("first"), "timeout")
	if n := m.Count("f", "first"); n != 1 {
		t.Errorf("%d requests in one call whose time is too short", n)
	}
}

// Package native tests the native tier from outside: when compiled programs take over from the engine, and what happens where they go wrong. The compiler is a test's own
// (rig.Compiler), which makes executables that go wrong on demand.
package tools

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const method = "/v1/tools/worker/methods/double"

// program doubles its argument; compiled, it does what mode says.
func program(mode string) string {
	return rig.Program("\t// native: " + mode + "\n\tn, _ := call.Args[0].(float64)\n\treturn n * 2, nil")
}

// start starts a daemon whose programs are hot after two calls, with the program behind worker.double.
func start(t *testing.T, source string, args ...string) *rig.Daemon {
	t.Helper()
	compiled := t.TempDir()
	if err := os.Chmod(compiled, 0o755); err != nil {
		t.Fatal(err)
	}
	m := rig.NewModel(t, rig.Script{"worker.double": {source, rig.Program("\tn, _ := call.Args[0].(float64)\n\treturn 2 * n, nil")}, "helper.help": {rig.Program("\treturn 1, nil")}})
	return rig.StartIn(t, m, []string{rig.Compiler + "=" + compiled, "RECURGENT_NATIVE=auto"}, append([]string{"--policy", "native.min_calls=2 native.min_cpu_ms=0"}, args...)...)
}

// cache is the directory of the executables.
func cache(d *rig.Daemon) string {
	for _, v := range d.Env {
		if dir, ok := strings.CutPrefix(v, rig.Compiler+"="); ok {
			return dir
		}
	}
	return ""
}

// state returns the state of the method's program in the native tier, and why.
func state(d *rig.Daemon) (state, why string) {
	d.T.Helper()
	n, _ := d.Get(method)["native"].(map[string]any)
	state, _ = n["state"].(string)
	why, _ = n["why"].(string)
	return state, why
}

// callUntil makes calls, which all must be right, until the program is in the state.
func callUntil(d *rig.Daemon, session, want string) {
	d.T.Helper()
	rig.Until(d.T, "program is "+want, func() bool {
		d.WantValue(d.Call(session, "double", 4), 8, "")
		got, _ := state(d)
		return got == want
	})
}

// wantTier checks the value and what ran the program.
func wantTier(d *rig.Daemon, r rig.Reply, value any, tier string) {
	d.T.Helper()
	d.WantValue(r, value, "")
	if r.Program.Tier != tier || (r.Program.Engine == "") != (tier == "native") {
		d.T.Errorf("the reply says engine %q, tier %q; want %s", r.Program.Engine, r.Program.Tier, tier)
	}
	if e := d.LogOf(r); e["program_tier"] != tier {
		d.T.Errorf("the log has tier %v, want %s", e["program_tier"], tier)
	}
}

// A program that is called often is compiled, checked on twenty calls, and takes over. Replies, log, metrics, views and commands say so.
func TestHotProgramGoesNative(t *testing.T) {
	t.Parallel()
	d := start(t, program("same"))
	if v := d.Get("/v1/version"); v["tier"] != "native" || v["native"].(map[string]any)["state"] != "on" || v["native"].(map[string]any)["toolchain"] == nil {
		t.Errorf("version: tier %v, native %v", v["tier"], v["native"])
	}
	s := d.Session("worker")
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
	callUntil(d, s, "native")
	calls := d.Metric(`recurgent_tier_runs_total{tier="engine"}`)
	if calls < 22 {
		t.Errorf("it went native after %v calls, want two that make it hot and twenty that prove it", calls)
	}
	was := d.Metric(`recurgent_tier_runs_total{tier="native"}`) // the last check may have ended before the last call
	for n := range 3 {
		wantTier(d, d.Call(s, "double", n), 2*n, "native")
	}
	for series, want := range map[string]float64{`recurgent_tier_runs_total{tier="native"}`: was + 3, `recurgent_native_builds_total{outcome="ok"}`: 1, `recurgent_native_programs{state="native"}`: 1,
		`recurgent_engine_differences_total`: 0, `recurgent_native_faults_total{kind="broken"}`: 0} {
		if got := d.Metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if out, _, code := d.Client("tools", "show", "worker", "double"); code != 0 || !strings.Contains(out, "runs on: native since 20") {
		t.Errorf("tools show: %d: %s", code, out)
	}
	if out := d.Output.String(); !strings.Contains(out, "on (go1.") || !strings.Contains(out, ", installed)") {
		t.Errorf("the start-up line does not say that the tier is on:\n%s", out)
	}
}

// Where the setting is off, or there is no toolchain, everything runs on the engine and the reason is given.
func TestOff(t *testing.T) {
	t.Parallel()
	d := start(t, program("same"), "--native", "off")
	if v := d.Get("/v1/version"); v["tier"] != "engine" || v["native"].(map[string]any)["state"] != "off" || v["native"].(map[string]any)["why"] != "--native is off" {
		t.Errorf("version: tier %v, native %v", v["tier"], v["native"])
	}
	s := d.Session("worker")
	for range 30 {
		d.WantValue(d.Call(s, "double", 4), 8, "")
	}
	if got, why := state(d); got != "off" || !strings.Contains(why, "--native is off") {
		t.Errorf("the program is %s (%s)", got, why)
	}
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
}

// A program that ends otherwise once compiled stays on the engine: it is counted, logged, written out with what it takes to repeat it, and remembered.
func TestDifference(t *testing.T) {
	t.Parallel()
	d := start(t, program("differs at 13"))
	s := d.Session("worker")
	callUntil(d, s, "checking")
	for got := ""; got != "off"; got, _ = state(d) {
		d.WantValue(d.Call(s, "double", 13), 26, "")
	}
	_, why := state(d)
	if !strings.Contains(why, "ends otherwise than on the engine, on call call_") {
		t.Errorf("why: %s", why)
	}
	if n := d.Metric("recurgent_engine_differences_total"); n != 1 {
		t.Errorf("%v differences are counted, want 1", n)
	}
	files, err := filepath.Glob(filepath.Join(d.State(), "native", "differences", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("written out: %v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"value": 26`, `"value": "not what the engine says"`, "native: differs at 13", `"role": "worker"`, `"args": [`} {
		if !strings.Contains(string(data), part) {
			t.Errorf("what is written out lacks %s:\n%s", part, data)
		}
	}
	if out := d.Output.String(); !strings.Contains(out, "a program ends otherwise natively than on the engine") || !strings.Contains(out, filepath.Base(files[0])) {
		t.Errorf("the log does not say so:\n%s", out)
	}
	d.Restart()
	for range 30 {
		wantTier(d, d.Call(s, "double", 13), 26, "engine")
	}
	if got, again := state(d); got != "off" || again != why {
		t.Errorf("after a restart the program is %s (%s)", got, again)
	}
	out, _, _ := rig.Run(t, d.Env, "doctor", "--listen", "127.0.0.1:0")
	if !strings.Contains(out, "worker.double") || !strings.Contains(out, "native") {
		t.Errorf("doctor does not name the program:\n%s", out)
	}
}

// A proved program answers natively right after a restart, as soon as its executable is at hand.
func TestRestart(t *testing.T) {
	t.Parallel()
	d := start(t, program("same"))
	s := d.Session("worker")
	callUntil(d, s, "native")
	d.Restart()
	wantTier(d, d.Call(s, "double", 4), 8, "engine") // has it built, and would be too little to prove it anew
	rig.Until(t, "the program is native without another call", func() bool { got, _ := state(d); return got == "native" })
	wantTier(d, d.Call(s, "double", 5), 10, "native")
}

// Another program begins anew, and one that people went back to does too; what was archived leaves nothing behind.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	d := start(t, program("same"))
	s := d.Session("worker")
	callUntil(d, s, "native")
	want := func(after, state1 string) {
		t.Helper()
		if got, why := state(d); got != state1 {
			t.Errorf("after %s the program is %s (%s), want %s", after, got, why, state1)
		}
	}
	d.Do(http.StatusOK, http.MethodPut, method, map[string]any{"code": rig.Program("\tn, _ := call.Args[0].(float64)\n\treturn n + n, nil")})
	want("another program", "idle")
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
	callUntil(d, s, "native")
	d.Do(http.StatusOK, http.MethodPost, method+"/rollback", nil)
	want("going back", "idle")
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
	callUntil(d, s, "native")
	d.Do(http.StatusOK, http.MethodPost, method+"/regenerate", nil)
	d.WantValue(d.Call(s, "double", 4), 8, "")
	want("a regeneration", "idle")
	callUntil(d, s, "native")
	d.Do(http.StatusNoContent, http.MethodDelete, method, nil)
	for _, dir := range []string{cache(d), filepath.Join(d.State(), "native", "verdicts")} {
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("left in %s after the program was archived: %v, %v", dir, files, err)
		}
	}
}

// What compares and tries programs runs on the engine, whatever answers calls.
func TestJudgesRunOnTheEngine(t *testing.T) {
	t.Parallel()
	d := start(t, program("differs at 13"))
	s := d.Session("worker")
	callUntil(d, s, "native")
	r := d.Call(s, "double", 13) // which no check had seen
	wantTier(d, r, "not what the engine says", "native")
	replay := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+r.CallID+"/replay", nil).Object(t)
	if replay["equal"] != false || !strings.Contains(fmt.Sprint(replay["replayed"]), "26") {
		t.Errorf("replay: %v", replay)
	}
	tried := d.Do(http.StatusOK, http.MethodPost, method+"/try", map[string]any{"args": []any{13}}).Object(t)
	if o, _ := tried["outcome"].(map[string]any); o["value"] != 26.0 {
		t.Errorf("try: %v", tried)
	}
	d.Do(http.StatusOK, http.MethodPut, method+"/examples", map[string]any{"examples": []any{map[string]any{"args": []any{13}, "expect": map[string]any{"value": 26}}}})
	run := d.Do(http.StatusOK, http.MethodPost, method+"/examples/run", nil).Object(t)
	if run["passed"] != 1.0 {
		t.Errorf("examples: %v", run)
	}
}

// A compiled program that dies before it asks for anything costs the call nothing, and answers no more calls.
func TestDeathCostsNothing(t *testing.T) {
	t.Parallel()
	d := start(t, program("dies at 99"))
	s := d.Session("worker")
	callUntil(d, s, "native")
	wantTier(d, d.Call(s, "double", 99), 198, "engine")
	if got, why := state(d); got != "off" || !strings.Contains(why, "its compiled program failed") {
		t.Errorf("the program is %s (%s)", got, why)
	}
	if n := d.Metric(`recurgent_native_faults_total{kind="broken"}`); n != 1 {
		t.Errorf("%v faults, want 1", n)
	}
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
	d.Restart()
	if got, _ := state(d); got != "off" {
		t.Errorf("after a restart the program is %s", got)
	}
}

// After a host call the engine cannot run the program again: then the failure is nobody's fault, and the next call runs on the engine.
func TestDeathAfterAHostCall(t *testing.T) {
	t.Parallel()
	d := start(t, rig.Program("\t// native: dies at 99\n\tcall.Tool(\"helper\").Call(\"help\")\n\tn, _ := call.Args[0].(float64)\n\treturn n * 2, nil"))
	s := d.Session("worker")
	callUntil(d, s, "native")
	before := d.Artifact("worker", "double")
	r := d.Call(s, "double", 99)
	if r.Outcome.OK || r.Outcome.ErrorType != "runner_crash" || r.Outcome.Authored || !strings.Contains(r.Outcome.ErrorMessage, "the compiled program failed") {
		t.Errorf("got %+v", r.Outcome)
	}
	after := d.Artifact("worker", "double")
	for _, figure := range []string{"failure_count", "success_count", "recent_failure_rate", "current_generation"} {
		if before[figure] != after[figure] {
			t.Errorf("%s was %v and is %v: the program is blamed", figure, before[figure], after[figure])
		}
	}
	wantTier(d, d.Call(s, "double", 99), 198, "engine")
}

// An executable that was damaged or removed is built again; calls do not notice.
func TestDamagedExecutable(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the load of the machine: its tasks, memory and processor")
	}
	t.Parallel()
	d := start(t, program("same"), "--isolation", "call") // each call starts a process
	s := d.Session("worker")
	for _, damage := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.Rename(path, path+".moved") },
		func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o755)
		},
	} {
		callUntil(d, s, "native")
		files, err := filepath.Glob(filepath.Join(cache(d), strings.Repeat("[0-9a-f]", 64)))
		if err != nil || len(files) != 1 {
			t.Fatalf("executables %v, %v", files, err)
		}
		if err := damage(files[0]); err != nil {
			t.Fatal(err)
		}
		wantTier(d, d.Call(s, "double", 4), 8, "engine")
	}
	callUntil(d, s, "native")
	if n := d.Metric(`recurgent_native_faults_total{kind="missing"}`); n != 3 {
		t.Errorf("%v faults, want 3", n)
	}
}

// Where a program cannot be compiled, for want of room or of a toolchain, it stays on the engine and the reason is given.
func TestBuildFails(t *testing.T) {
	t.Parallel()
	d := start(t, program("unbuildable"))
	s := d.Session("worker")
	callUntil(d, s, "off")
	if _, why := state(d); !strings.Contains(why, "it could not be compiled: no space left on device") {
		t.Errorf("why: %s", why)
	}
	wantTier(d, d.Call(s, "double", 4), 8, "engine")
	rig.Until(t, "one failed build is counted", func() bool { return d.Metric(`recurgent_native_builds_total{outcome="failed"}`) == 1 })
}

// A stop ends a build, and calls do not wait for one.
func TestStopDuringABuild(t *testing.T) {
	t.Parallel()
	d := start(t, program("slow"))
	s := d.Session("worker")
	callUntil(d, s, "building")
	rig.Until(t, "build begins", func() bool {
		wantTier(d, d.Call(s, "double", 4), 8, "engine")
		_, err := os.Stat(filepath.Join(cache(d), "building"))
		return err == nil
	})
	if code := d.Stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d: %s", code, d.Output)
	}
}

package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// P-01..P-04: the versions and limits that stored things depend on are told.
func TestVersionTellsWhatStoredThingsDependOn(t *testing.T) {
	d := newDaemon(t, newModel(t, script{"calculator.add": {progAdd}}))
	v := d.get("/v1/version")
	for k, want := range map[string]any{"name": "recurgentd", "toolstore_schema_version": 1.0, "max_repairs_before_regen": 3.0, "known_tools_prompt_limit": 12.0, "provider": "openai", "model": "scripted"} {
		if v[k] != want {
			t.Errorf("%s: got %v, want %v", k, v[k], want)
		}
	}
	d.call(d.session("calculator"), "add", 1, 2)
	a := d.get("/v1/tools/calculator/methods/add")
	if a["prompt_version"] != v["prompt_version"] || a["runtime_version"] != v["runtime_version"] || a["model"] != "scripted" || v["prompt_version"] == "" {
		t.Errorf("artifact %v, %v, %v; version %v", a["prompt_version"], a["runtime_version"], a["model"], v)
	}
	if level, _ := v["sandbox"].(map[string]any)["level"].(string); !slices.Contains([]string{"full", "reduced", "process"}, level) {
		t.Errorf("sandbox: %v", v["sandbox"])
	}
}

// P-07: the same method of two roles is two artifacts.
func TestIdentityIsRoleAndMethod(t *testing.T) {
	m := newModel(t, script{"one.name": {program("\treturn \"one\", nil")}, "two.name": {program("\treturn \"two\", nil")}})
	d := newDaemon(t, m)
	for range 2 {
		for _, role := range []string{"one", "two"} {
			d.wantValue(d.call(d.session(role), "name"), role, "")
		}
	}
	if n := len(m.requests()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}

// P-14, P-19: the registry over HTTP: made, read, changed, listed, used, archived.
func TestRegistry(t *testing.T) {
	d := newDaemon(t, newModel(t, script{"calculator.add": {progAdd}}))
	contract := map[string]any{"purpose": "arithmetic", "deliverable": map[string]any{"type": "number"}, "acceptance": []any{map[string]any{"assert": "exact"}}, "failure_policy": map[string]any{"on_error": "say so"}}
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", contract)
	got := d.get("/v1/tools/calculator")
	for k, want := range contract {
		if !equal(want, got[k]) {
			t.Errorf("%s: got %v, want %v", k, got[k], want)
		}
	}
	if got["usage_count"] != 0.0 || got["created_at"] == nil || got["last_used_at"] == nil {
		t.Errorf("a new tool: %v", got)
	}
	s := d.session("calculator")
	d.call(s, "add", 1, 2)
	d.call(s, "add", 1, 2)
	if after := d.get("/v1/tools/calculator"); after["usage_count"] != 2.0 || after["last_used_at"] == got["last_used_at"] {
		t.Errorf("after two calls: usage %v, last used %v", after["usage_count"], after["last_used_at"])
	}
	contract["purpose"] = "exact arithmetic"
	d.do(http.StatusOK, http.MethodPut, "/v1/tools/calculator", contract)
	if l := d.list("/v1/tools"); len(l) != 1 || l[0]["purpose"] != "exact arithmetic" {
		t.Errorf("tools: %v", l)
	}
	d.wantValue(d.call(s, "add", 2, 2), 4, "persisted") // a reworded purpose does not cost a repair
	d.do(http.StatusNoContent, http.MethodDelete, "/v1/tools/calculator", nil)
	d.do(http.StatusNotFound, http.MethodGet, "/v1/tools/calculator", nil)
}

// P-15: a program that delegates has registered the tool before its caller hears of it.
func TestDelegateRegisters(t *testing.T) {
	d := newDaemon(t, newModel(t, script{
		"boss.work":   {program("\to := call.Delegate(\"helper\", recurgent.Contract{Purpose: \"help\"}).Call(\"do\", 20.0, 22.0)\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")},
		"helper.do":   {progAdd},
		"boss.inform": {program("\treturn call.Tools()[\"helper\"].Purpose, nil")},
	}))
	s := d.session("boss")
	d.wantValue(d.call(s, "work"), 42, "generated")
	if p := d.get("/v1/tools/helper")["purpose"]; p != "help" {
		t.Errorf("purpose %v", p)
	}
	d.restart()
	d.wantValue(d.call(s, "inform"), "help", "generated")
	d.wantValue(d.call(d.session("helper"), "do", 1, 1), 2, "persisted")
}

// P-26, P-34, P-35, P-37: counters equal the calls, under parallel calls too, and a first call that failed leaves no program.
func TestCounters(t *testing.T) {
	d := newDaemon(t, newModel(t, script{"calculator.add": {progAdd}, "calculator.explode": {progPanic}}))
	d.call(d.session("calculator"), "add", 0, 0)
	var wg sync.WaitGroup
	for i := range 63 {
		s := d.session("calculator")
		wg.Go(func() {
			if _, err := d.try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls", mustJSON(map[string]any{"method": "add", "args": []any{i, 1}}), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a := d.get("/v1/tools/calculator/methods/add")
	if a["success_count"] != 64.0 || a["failure_count"] != 0.0 {
		t.Errorf("success_count %v, failure_count %v after 64 calls", a["success_count"], a["failure_count"])
	}
	d.wantError(d.call(d.session("calculator"), "explode"), "execution")
	d.do(http.StatusNotFound, http.MethodGet, "/v1/tools/calculator/methods/explode", nil)
	d.restart()
	if again := d.get("/v1/tools/calculator/methods/add"); again["success_count"] != 64.0 {
		t.Errorf("success_count %v after a restart", again["success_count"])
	}
}

// H-60: parallel calls of one session run one after another and leave a gapless history.
func TestOneSessionInParallel(t *testing.T) {
	d := newDaemon(t, newModel(t, script{"calculator.increment": {progIncrement}}))
	s := d.session("calculator")
	d.call(s, "increment")
	var wg sync.WaitGroup
	for range 63 {
		wg.Go(func() {
			if _, err := d.try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"increment"}`), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c := d.get("/v1/sessions/" + s + "/context"); c["value"] != 64.0 {
		t.Errorf("context %v after 64 increments", c)
	}
	for i, r := range d.history(s) {
		if r["seq"] != float64(i+1) {
			t.Errorf("record %d has seq %v", i, r["seq"])
		}
	}
}

// P-29, P-31..P-33, P-36, P-47: a repair makes a generation with its parent and its trigger; the old one is kept with its code.
func TestGenerations(t *testing.T) {
	breaks := program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	mended := program("\tif call.Arg(0, \"x\") == \"bad\" {\n\t\treturn \"mended\", nil\n\t}\n\treturn call.Arg(0, \"x\"), nil")
	m := newModel(t, script{"r.m": {breaks, mended}})
	d := newDaemon(t, m)
	s := d.session("r")
	d.wantValue(d.call(s, "m", "good"), "good", "generated")
	got := d.call(s, "m", "bad")
	d.wantValue(got, "mended", "repaired")
	if got.Program.Generation != "gen-2" || !strings.HasPrefix(got.Program.Trigger, "repair:") {
		t.Errorf("program: %+v", got.Program)
	}
	q := m.last()
	if q.Kind != "repair" || !strings.Contains(q.User, breaks) || !strings.Contains(q.User, "boom") || !strings.Contains(q.User, "<failure_class>intrinsic</failure_class>") {
		t.Errorf("the repair request: %s\n%s", q.Kind, q.User)
	}
	list := d.list("/v1/tools/r/methods/m/generations")
	if len(list) != 2 || list[0]["parent_id"] != "gen-1" || list[1]["trigger"] != "initial_forge" || list[1]["code"] != breaks || list[0]["code"] != mended {
		t.Errorf("generations: %v", list)
	}
	if a := d.get("/v1/tools/r/methods/m"); a["repair_count_since_regen"] != 1.0 || a["intrinsic_failure_count"] != 1.0 || a["last_failure_class"] != "intrinsic" || a["code"] != mended {
		t.Errorf("artifact: %v", a)
	}
	d.wantValue(d.call(s, "m", "good"), "good", "persisted")
	e := d.get("/v1/calls/" + got.CallID) // P-60, X-15
	if e["repair_attempted"] != true || e["repair_succeeded"] != true || e["code"] != mended || !equal("mended", e["outcome"].(map[string]any)["value"]) {
		t.Errorf("log entry: %v", e)
	}
	if f, _ := e["attempt_failures"].([]any); len(f) != 1 {
		t.Errorf("attempt failures: %v", e["attempt_failures"])
	}
}

// P-18, P-40..P-42: files that were damaged or tampered with while the daemon was down are set aside or refused, never
// run, and the daemon starts.
func TestDamagedFiles(t *testing.T) {
	m := newModel(t, script{"calculator.add": {progAdd}})
	d := newDaemon(t, m)
	s := d.session("calculator")
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", map[string]any{"purpose": "arithmetic"})
	d.call(s, "add", 1, 2)
	artifact, registry := filepath.Join(d.state(), "tools", "calculator", "add.json"), filepath.Join(d.state(), "tools", "registry.json")
	for _, c := range []struct {
		name, path string
		damage     func(data []byte) []byte
		aside      bool
	}{
		{"artifact torn", artifact, func(b []byte) []byte { return b[:len(b)/2] }, true},
		{"artifact is no JSON", artifact, func([]byte) []byte { return []byte("<html>") }, true},
		{"code tampered with", artifact, func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "a + b", "a - b")) }, false},
		{"runtime of another time", artifact, func(b []byte) []byte {
			return []byte(strings.ReplaceAll(string(b), "recurgent-abi-1", "recurgent-abi-0"))
		}, false},
		{"registry torn", registry, func(b []byte) []byte { return b[:len(b)/2] }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.kill(syscall.SIGTERM)
			data, err := os.ReadFile(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.path, c.damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			d.start()
			asked := len(m.requests())
			got := d.call(s, "add", 40, 2)
			d.wantValue(got, 42, "")
			if c.path == artifact && (len(m.requests()) != asked+1 || got.Program.Source == "persisted") {
				t.Errorf("%d model requests, program %+v", len(m.requests())-asked, got.Program)
			}
			aside, err := filepath.Glob(c.path + ".corrupt-*")
			if err != nil || c.aside && len(aside) == 0 {
				t.Errorf("nothing was set aside beside %s: %v", c.path, err)
			}
			for _, f := range aside {
				if kept, err := os.ReadFile(f); err != nil || string(kept) != string(c.damage(data)) {
					t.Errorf("%s is not what was found: %v", f, err)
				}
				if err := os.Remove(f); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// the same key and body are answered once, byte for byte; across a restart too.
func TestIdempotencyKey(t *testing.T) {
	d := newDaemon(t, newModel(t, script{"calculator.increment": {progIncrement}}))
	s := d.session("calculator")
	path, key := "/v1/sessions/"+s+"/calls", map[string]string{"Idempotency-Key": "6c5a1f7e"}
	first := d.send(http.MethodPost, path, []byte(`{"method":"increment","args":[5]}`), key)
	again := d.send(http.MethodPost, path, []byte(`{"method":"increment","args":[5]}`), key)
	d.restart()
	later := d.send(http.MethodPost, path, []byte(`{"method":"increment","args":[5]}`), key)
	if first.Status != http.StatusOK || string(first.Body) != string(again.Body) || string(first.Body) != string(later.Body) {
		t.Errorf("replies differ:\n%s\n%s\n%s", first.Body, again.Body, later.Body)
	}
	other := d.send(http.MethodPost, path, []byte(`{"method":"increment","args":[6]}`), key)
	if other.Status != http.StatusUnprocessableEntity {
		t.Errorf("another body under the same key: %d %s", other.Status, other.Body)
	}
	if n := len(d.history(s)); n != 1 {
		t.Errorf("%d records for one execution", n)
	}
}

// The issue, point 6: every reply has an X-Request-Id, and traceparent becomes the trace id, of nested calls too.
func TestTracing(t *testing.T) {
	m := newModel(t, script{"delegator.compute": {progDelegates}, "calculator.add": {progAdd}})
	d := newDaemon(t, m)
	s := d.session("delegator")
	trace := "4bf92f3577b34da6a3ce929d0e0e4736"
	r := d.send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"compute"}`), map[string]string{"traceparent": "00-" + trace + "-00f067aa0ba902b7-01", "X-Request-Id": "mine-1"})
	var got reply
	if err := json.Unmarshal(r.Body, &got); err != nil || got.TraceID != trace || r.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("trace %q, request id %q, %v", got.TraceID, r.Header.Get("X-Request-Id"), err)
	}
	for _, rec := range d.history(s) {
		if rec["trace_id"] != trace {
			t.Errorf("record of %v: trace %v", rec["method_name"], rec["trace_id"])
		}
	}
	for _, q := range m.requests() {
		if !strings.Contains(q.Header.Get("traceparent"), trace) {
			t.Errorf("the model was asked for %s.%s with traceparent %q", q.Role, q.Method, q.Header.Get("traceparent"))
		}
	}
	for _, path := range []string{"/healthz", "/metrics", "/v1/nothing", "/openapi.yaml"} {
		if id := d.send(http.MethodGet, path, nil, nil).Header.Get("X-Request-Id"); id == "" {
			t.Errorf("%s: no X-Request-Id", path)
		}
	}
}

// The issue, point 6; H-38..H-40: one JSON line a call in calls.jsonl; no role, method or id is a metric's label, but in
// the capped figures of the busiest artifacts.
func TestSeen(t *testing.T) {
	m := newModel(t, script{"assistant.count": {program("\tn := 0\n\tfor _, r := range call.History() {\n\t\tif r.MethodName == \"echo\" {\n\t\t\tn++\n\t\t}\n\t}\n\treturn n, nil")}, "assistant.echo": {progEcho}})
	d := newDaemon(t, m)
	s := d.session("assistant")
	d.call(s, "echo")
	d.call(s, "count")
	d.call(s, "count")
	metrics := string(d.do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)
	for _, line := range strings.Split(metrics, "\n") {
		if strings.Contains(line, s) || strings.Contains(line, `"assistant"`) && !strings.HasPrefix(line, "recurgent_artifact_") {
			t.Errorf("an open label: %s", line)
		}
	}
	d.kill(syscall.SIGTERM)
	data, err := os.ReadFile(filepath.Join(d.state(), "calls.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines for 3 calls", len(lines))
	}
	for i, line := range lines {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		reads := e["method"] == "count"
		if e["runtime"] != "go" || e["history_record_appended"] != true || e["conversation_history_size"] != float64(i+1) || e["history_access_detected"] != reads {
			t.Errorf("line %d: %s", i, line)
		}
		if tags, _ := e["history_query_patterns"].([]any); reads != (len(tags) > 0) { // H-41
			t.Errorf("line %d: query patterns %v", i, tags)
		}
	}
	d.start()
}

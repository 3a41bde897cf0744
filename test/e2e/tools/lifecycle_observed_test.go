package tools

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Every reply has an X-Request-Id, and traceparent becomes the trace id, of nested calls too.
func TestTracing(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"delegator.compute": {rig.ProgDelegates}, "calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("delegator")
	trace := "4bf92f3577b34da6a3ce929d0e0e4736"
	r := d.Send(http.MethodPost, "/v1/sessions/"+s+"/calls", []byte(`{"method":"compute"}`),
		map[string]string{"traceparent": "00-" + trace + "-00f067aa0ba902b7-01", "X-Request-Id": "mine-1"})
	var got rig.Reply
	if err := json.Unmarshal(r.Body, &got); err != nil || got.TraceID != trace ||
		r.Header.Get("X-Request-Id") != "mine-1" {
		t.Errorf("trace %q, request id %q, %v", got.TraceID, r.Header.Get("X-Request-Id"), err)
	}
	for _, rec := range d.History(s) {
		if rec["trace_id"] != trace {
			t.Errorf("record of %v: trace %v", rec["method_name"], rec["trace_id"])
		}
	}
	for _, q := range m.Questions() {
		if !strings.Contains(q.Header.Get("traceparent"), trace) {
			t.Errorf("the model was asked for %s.%s with traceparent %q", q.Role, q.Method, q.Header.Get("traceparent"))
		}
	}
	for _, path := range []string{"/healthz", "/metrics", "/v1/nothing", "/openapi.yaml"} {
		if id := d.Send(http.MethodGet, path, nil, nil).Header.Get("X-Request-Id"); id == "" {
			t.Errorf("%s: no X-Request-Id", path)
		}
	}
}

// One JSON line a call in calls.jsonl; no role, method or id is a metric's label, but in
// the capped figures of the busiest artifacts.
func TestSeen(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"assistant.count": {rig.Program(
		"\tn := 0\n\tfor _, r := range call.History() {\n\t\tif r.MethodName == \"echo\" {\n\t\t\tn++\n\t\t}\n\t}\n\treturn n, nil")}, "assistant.echo": {rig.ProgEcho}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	d.Call(s, "echo")
	d.Call(s, "count")
	d.Call(s, "count")
	metrics := string(d.Do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)
	for _, line := range strings.Split(metrics, "\n") {
		if strings.Contains(line, s) || strings.Contains(line, `"assistant"`) &&
			!strings.HasPrefix(line, "recurgent_artifact_") {
			t.Errorf("an open label: %s", line)
		}
	}
	data := callLog(d)
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
		if e["runtime"] != "go" || e["history_record_appended"] != true ||
			e["conversation_history_size"] != float64(i+1) || e["history_access_detected"] != reads {
			t.Errorf("line %d: %s", i, line)
		}
		if tags, _ := e["history_query_patterns"].([]any); reads != (len(tags) > 0) {
			t.Errorf("line %d: query patterns %v", i, tags)
		}
	}
}

// callLog is the call log as it is stored, one line a call.
func callLog(d *rig.Daemon) (data []byte) {
	d.T.Helper()
	d.Look(func(dir string) {
		var err error
		if data, err = os.ReadFile(filepath.Join(dir, "calls.jsonl")); err != nil {
			d.T.Fatal(err)
		}
	})
	return data
}

// The thirteen fields stand on the log lines of fresh, warm, repaired and extrinsic calls.
func TestThirteenFields(t *testing.T) {
	t.Parallel()
	f := rig.NewSource(t, rig.ItemsBody)
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes}, "news.read": {rig.ProgFetches}})
	d := rig.Start(t, m, "--fetch-allow", f.Host())
	s, news := d.Session("r"), d.Session("news")
	fresh, warm, repaired := d.Call(s, "m", 1), d.Call(s, "m", 1), d.Call(s, "m", "bad")
	d.Call(news, "read", f.URL)
	f.Status(503)
	extrinsic := d.Call(news, "read", f.URL)
	for _, tt := range []struct {
		name string
		call rig.Reply
		want map[string]any
	}{
		{"fresh", fresh, map[string]any{"program_source": "generated", "artifact_hit": false,
			"artifact_success_count": 1, "artifact_generation_trigger": "initial_forge", "repair_attempted": false,
			"failure_class": ""}},
		{"warm", warm, map[string]any{"program_source": "persisted", "artifact_hit": true, "artifact_success_count": 2,
			"artifact_failure_count": 0, "repair_succeeded": false}},
		{"repaired", repaired, map[string]any{"program_source": "repaired", "artifact_intrinsic_failure_count": 1,
			"artifact_failure_count": 1, "artifact_generation_trigger": "repair:execution", "repair_attempted": true,
			"repair_succeeded": true}},
		{"extrinsic", extrinsic, map[string]any{"program_source": "persisted", "artifact_extrinsic_failure_count": 1,
			"artifact_intrinsic_failure_count": 0, "artifact_adaptive_failure_count": 0, "failure_class": "extrinsic"}},
	} {
		e := d.LogOf(tt.call)
		for _, k := range strings.Fields(
			"program_source artifact_hit artifact_prompt_version artifact_contract_fingerprint artifact_success_count artifact_failure_count artifact_intrinsic_failure_count artifact_adaptive_failure_count artifact_extrinsic_failure_count artifact_generation_trigger repair_attempted repair_succeeded failure_class") {
			if _, ok := e[k]; !ok {
				t.Errorf("%s: no %s", tt.name, k)
			}
		}
		for k, v := range tt.want {
			if !rig.Equal(v, e[k]) {
				t.Errorf("%s: %s is %v, want %v", tt.name, k, e[k], v)
			}
		}
	}
}

// The thirteen fields stand on every line of the call log, whatever the call was and wherever it is read.
func TestThirteenFieldsOnEveryLine(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgMayPanic, rig.ProgFixes},
		"r.broken": {"package tool\n\nfunc Run(call"},
		"r.honest": {rig.Program("\treturn nil, recurgent.Fail(\"no\", \"no\")")},
		"r.dead":   {rig.Status(http.StatusUnauthorized)},
		"r.nests":  {rig.Program("\treturn call.Tool(\"r\").Call(\"m\", 1).Value, nil")}})
	d := rig.Start(t, m)
	s := d.Session("r")
	d.Call(s, "m", 1)
	d.Call(s, "m", 1)
	d.Call(s, "m", "bad")
	for _, method := range []string{"broken", "honest", "dead", "nests", "nests"} {
		d.Call(s, method)
	}
	d.Call(s, "name=", "Ann")
	fields := strings.Fields(
		"program_source artifact_hit artifact_prompt_version artifact_contract_fingerprint artifact_success_count artifact_failure_count artifact_intrinsic_failure_count artifact_adaptive_failure_count artifact_extrinsic_failure_count artifact_generation_trigger repair_attempted repair_succeeded failure_class")
	check := func(where string, e map[string]any) {
		t.Helper()
		for _, k := range fields {
			if v, ok := e[k]; !ok || v == nil {
				t.Errorf("%s, %v (%v): no %s", where, e["method"], e["program_source"], k)
			}
		}
		if sum := e["artifact_intrinsic_failure_count"].(float64) + e["artifact_adaptive_failure_count"].(float64) +
			e["artifact_extrinsic_failure_count"].(float64); sum != e["artifact_failure_count"] {
			t.Errorf("%s, %v: failures %v, their sum is %v", where, e["method"], e["artifact_failure_count"], sum)
		}
	}
	listed := d.List("/v1/calls")
	for _, e := range listed {
		check("GET /v1/calls", e)
		check("GET /v1/calls/{id}", d.Get("/v1/calls/"+e["call_id"].(string)))
	}
	data := callLog(d)
	lines := 0
	for line := range strings.Lines(string(data)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		check("calls.jsonl", e)
		lines++
	}
	if lines != len(listed) || lines != 11 { // nine calls, two of them with a nested one
		t.Errorf("%d lines, %d listed, want 11", lines, len(listed))
	}
}

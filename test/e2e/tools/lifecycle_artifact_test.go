package tools

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The version reply has the versions and limits that stored data depends on.
func TestVersionSaysWhatStoredDataDependsOn(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	v := d.Get("/v1/version")
	for k, want := range map[string]any{"name": "recurgentd", "toolstore_schema_version": 1.0,
		"max_repairs_before_regen": 3.0, "known_tools_prompt_limit": 12.0, "provider": "openai", "model": "scripted",
		"go_version": runtime.Version(), "engine": "auto", "tier": "native", "store": rig.Store(t),
		"durability": "always"} {
		if v[k] != want {
			t.Errorf("%s: got %v, want %v", k, v[k], want)
		}
	}
	d.Call(d.Session("calculator"), "add", 1, 2)
	a := d.Get("/v1/tools/calculator/methods/add")
	if a["prompt_version"] != v["prompt_version"] || a["runtime_version"] != v["runtime_version"] ||
		a["model"] != "scripted" || v["prompt_version"] == "" {
		t.Errorf("artifact %v, %v, %v; version %v", a["prompt_version"], a["runtime_version"], a["model"], v)
	}
	if level, _ := v["sandbox"].(map[string]any)["level"].(string); !slices.Contains([]string{"full", "reduced", "process"}, level) {
		t.Errorf("sandbox: %v", v["sandbox"])
	}
}

// With an interval, calls are answered before they are synced: fewer syncs than calls. A kill takes none of them.
func TestDurabilityInterval(t *testing.T) {
	rig.OnDisk(t, "a database has a durability of its own")
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}), "--durability", "interval:1s")
	if got := d.Get("/v1/version")["durability"]; got != "interval:1s" {
		t.Errorf("version: durability %v, want interval:1s", got)
	}
	session := d.Session("calculator")
	d.Call(session, "add", 1, 2)
	calls := 0
	// none is without an interval, however often they are tried
	rig.Until(t, "calls that are answered before they are synced", func() bool {
		before := d.Metric("recurgent_store_fsyncs_total")
		const some = 50
		for i := range some {
			d.WantValue(d.Call(session, "add", i, 1), i+1, "persisted")
		}
		calls += some
		return d.Metric("recurgent_store_fsyncs_total")-before < some/2
	})
	d.Stop(syscall.SIGKILL)
	d.Start()
	if got := d.Get("/v1/sessions/" + session)["history_size"]; got != float64(calls+1) {
		t.Errorf("after a kill: %v records, want %d", got, calls+1)
	}
}

// The same method of two roles is two artifacts.
func TestIdentityIsRoleAndMethod(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"one.name": {rig.Program("\treturn \"one\", nil")},
		"two.name": {rig.Program("\treturn \"two\", nil")}})
	d := rig.Start(t, m)
	for range 2 {
		for _, role := range []string{"one", "two"} {
			d.WantValue(d.Call(d.Session(role), "name"), role, "")
		}
	}
	if n := len(m.Questions()); n != 2 {
		t.Errorf("%d model requests, want 2", n)
	}
}

// The registry over HTTP: made, read, changed, listed, used, archived.
func TestRegistry(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}}))
	contract := map[string]any{"purpose": "arithmetic", "deliverable": map[string]any{"type": "number"},
		"acceptance": []any{map[string]any{"assert": "exact"}}, "failure_policy": map[string]any{"on_error": "say so"}}
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", contract)
	got := d.Get("/v1/tools/calculator")
	for k, want := range contract {
		if !rig.Equal(want, got[k]) {
			t.Errorf("%s: got %v, want %v", k, got[k], want)
		}
	}
	if got["usage_count"] != 0.0 || got["created_at"] == nil || got["last_used_at"] == nil {
		t.Errorf("a new tool: %v", got)
	}
	s := d.Session("calculator")
	d.Call(s, "add", 1, 2)
	d.Call(s, "add", 1, 2)
	if after := d.Get("/v1/tools/calculator"); after["usage_count"] != 2.0 ||
		after["last_used_at"] == got["last_used_at"] {
		t.Errorf("after two calls: usage %v, last used %v", after["usage_count"], after["last_used_at"])
	}
	contract["purpose"] = "exact arithmetic"
	d.Do(http.StatusOK, http.MethodPut, "/v1/tools/calculator", contract)
	if l := d.List("/v1/tools"); len(l) != 1 || l[0]["purpose"] != "exact arithmetic" {
		t.Errorf("tools: %v", l)
	}
	d.WantValue(d.Call(s, "add", 2, 2), 4, "persisted") // a reworded purpose does not cost a repair
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/tools/calculator", nil)
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/tools/calculator", nil)
}

// A program that delegates has registered the tool before its caller hears of it.
func TestDelegateRegisters(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{
		"boss.work": {rig.Program(
			"\to := call.Delegate(\"helper\", recurgent.Contract{Purpose: \"help\"}).Call(\"do\", 20.0, 22.0)\n\tif !o.OK() {\n\t\treturn nil, recurgent.Fail(o.ErrorType, o.ErrorMessage)\n\t}\n\treturn o.Value, nil")},
		"helper.do":   {rig.ProgAdd},
		"boss.inform": {rig.Program("\treturn call.Tools()[\"helper\"].Purpose, nil")},
	}))
	s := d.Session("boss")
	d.WantValue(d.Call(s, "work"), 42, "generated")
	if p := d.Get("/v1/tools/helper")["purpose"]; p != "help" {
		t.Errorf("purpose %v", p)
	}
	d.Restart()
	d.WantValue(d.Call(s, "inform"), "help", "generated")
	d.WantValue(d.Call(d.Session("helper"), "do", 1, 1), 2, "persisted")
}

// Counters equal the calls, under parallel calls too, and a first call that failed leaves no program.
func TestCounters(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd},
		"calculator.explode": {rig.ProgPanic}}))
	d.Call(d.Session("calculator"), "add", 0, 0)
	var wg sync.WaitGroup
	for i := range 63 {
		s := d.Session("calculator")
		wg.Go(func() {
			if _, err := d.Try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls",
				rig.MustJSON(map[string]any{"method": "add", "args": []any{i, 1}}), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a := d.Get("/v1/tools/calculator/methods/add")
	if a["success_count"] != 64.0 || a["failure_count"] != 0.0 {
		t.Errorf("success_count %v, failure_count %v after 64 calls", a["success_count"], a["failure_count"])
	}
	d.WantError(d.Call(d.Session("calculator"), "explode"), "execution")
	d.Do(http.StatusNotFound, http.MethodGet, "/v1/tools/calculator/methods/explode", nil)
	d.Restart()
	if again := d.Get("/v1/tools/calculator/methods/add"); again["success_count"] != 64.0 {
		t.Errorf("success_count %v after a restart", again["success_count"])
	}
}

// Parallel calls of one session run one after another and leave a gapless history.
func TestOneSessionInParallel(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.increment": {rig.ProgIncrement}}))
	s := d.Session("calculator")
	d.Call(s, "increment")
	var wg sync.WaitGroup
	for range 63 {
		wg.Go(func() {
			if _, err := d.Try(t.Context(), http.MethodPost, "/v1/sessions/"+s+"/calls",
				[]byte(`{"method":"increment"}`), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c := d.Get("/v1/sessions/" + s + "/context"); c["value"] != 64.0 {
		t.Errorf("context %v after 64 increments", c)
	}
	for i, r := range d.History(s) {
		if r["seq"] != float64(i+1) {
			t.Errorf("record %d has seq %v", i, r["seq"])
		}
	}
}

// Files that were damaged or tampered with while the daemon was down are moved aside or refused, never
// run, and the daemon starts.
func TestDamagedFiles(t *testing.T) {
	rig.OnDisk(t, "nobody damages single files of a database")
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/calculator", map[string]any{"purpose": "arithmetic"})
	d.Call(s, "add", 1, 2)
	artifact, registry := filepath.Join(d.State(), "tools", "calculator", "add.json"),
		filepath.Join(d.State(), "tools", "registry.json")
	for _, c := range []struct {
		name, path string
		damage     func(data []byte) []byte
		aside      bool
	}{
		{"artifact torn", artifact, func(b []byte) []byte { return b[:len(b)/2] }, true},
		{"artifact is no JSON", artifact, func([]byte) []byte { return []byte("<html>") }, true},
		{"code tampered with", artifact,
			func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "a + b", "a - b")) }, false},
		{"runtime of another time", artifact, func(b []byte) []byte {
			return []byte(strings.ReplaceAll(string(b), "recurgent-abi-1", "recurgent-abi-0"))
		}, false},
		{"registry torn", registry, func(b []byte) []byte { return b[:len(b)/2] }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.Stop(syscall.SIGTERM)
			data, err := os.ReadFile(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.path, c.damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			d.Start()
			asked := len(m.Questions())
			got := d.Call(s, "add", 40, 2)
			d.WantValue(got, 42, "")
			if c.path == artifact && (len(m.Questions()) != asked+1 || got.Program.Source == "persisted") {
				t.Errorf("%d model requests, program %+v", len(m.Questions())-asked, got.Program)
			}
			aside, err := filepath.Glob(c.path + ".corrupt-*")
			if err != nil || c.aside && len(aside) == 0 {
				t.Errorf("nothing was moved away beside %s: %v", c.path, err)
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

// The same key and body are answered once, byte for byte; across a restart too.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"calculator.increment": {rig.ProgIncrement}}))
	s := d.Session("calculator")
	path, key := "/v1/sessions/"+s+"/calls", map[string]string{"Idempotency-Key": "6c5a1f7e"}
	first := d.Send(http.MethodPost, path, []byte(`{"method":"increment","args":[5]}`), key)
	again := d.Send(http.MethodPost, path, []byte(`{"method":"increment","args":[5]}`), key)
	d.Restart()
	later := d.Send(http.MethodPost, path, []byte(`{"method":"increment","args":[5]}`), key)
	if first.Status != http.StatusOK || string(first.Body) != string(again.Body) ||
		string(first.Body) != string(later.Body) {
		t.Errorf("replies differ:\n%s\n%s\n%s", first.Body, again.Body, later.Body)
	}
	other := d.Send(http.MethodPost, path, []byte(`{"method":"increment","args":[6]}`), key)
	if other.Status != http.StatusUnprocessableEntity {
		t.Errorf("another body under the same key: %d %s", other.Status, other.Body)
	}
	if n := len(d.History(s)); n != 1 {
		t.Errorf("%d records for one execution", n)
	}
}

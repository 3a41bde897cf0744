package tools

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Reads can be off from the first call on: by a flag, by the environment, by the configuration file.
func TestSeed001Line387StartsWithReadsDisabled(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	d.Call(s, "add", 1, 2)
	file := filepath.Join(d.Dir, "config.yaml")
	if err := os.WriteFile(file, []byte("policy: artifact_read_enabled=false repair_enabled=false\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	args, env := d.Args, d.Env
	for name, set := range map[string]func(){
		"flag": func() {
			d.Args = append(args[:len(args):len(args)], "--policy",
				`{"artifact_read_enabled": false}`)
		},
		"environment": func() {
			d.Env = append(env[:len(env):len(env)],
				"RECURGENT_POLICY=artifact_read_enabled=false")
		},
		"file": func() { d.Args = append(args[:len(args):len(args)], "--config", file) },
	} {
		d.Args, d.Env = args, env
		d.Restart()
		d.Policy(map[string]any{"artifact_read_enabled": true})
		d.WantValue(d.Call(s, "add", 1, 2), 3, "persisted")
		set()
		d.Restart()
		got := d.Call(s, "add", 1, 2)
		if d.WantValue(got, 3, "generated"); got.Program.Selection.Reason != "read_disabled" {
			t.Errorf("%s: selection %+v", name, got.Program.Selection)
		}
		before := actID(d)
		d.Restart()
		if actID(d) != before {
			t.Errorf("%s: a start that changes nothing is in the audit trail", name)
		}
	}
}

// Every member of the policy can be set at the start; what is no policy ends the start with one line that names it.
func TestSeed001Line387EverySwitchHasAStartupSetting(t *testing.T) {
	t.Parallel()
	var members, words []string
	want := map[string]any{}
	for name, value := range rig.ParseJSON(string(rig.MustJSON(agent.DefaultPolicy()))).(map[string]any) {
		if name == "redact_version" {
			continue // the edition of a list, and no switch: an earlier one becomes this one
		}
		switch v := value.(type) {
		case bool:
			members, words, want[name] = append(members, name), append(words, name+"="+string(rig.MustJSON(!v))), !v
		case float64:
			members, words, want[name] = append(members, name), append(words, name+"="+string(rig.MustJSON(v-1))), v-1
		}
	}
	words = append(words, "promotion.enforce=true", "promotion.shadow=false", "weak_success.empty_arrays=false",
		"correction=manual", `artifact_read_roles=["one","two"]`)
	d := rig.Start(t, nil, "--policy", strings.Join(words, " "))
	p := d.Get("/v1/policy")
	for _, name := range members {
		if p[name] != want[name] {
			t.Errorf("%s is %v, want %v", name, p[name], want[name])
		}
	}
	if promotion := p["promotion"].(map[string]any); promotion["enforce"] != true || promotion["shadow"] != false ||
		p["correction"] != "manual" ||
		p["weak_success"].(map[string]any)["empty_arrays"] != false ||
		!rig.Equal(p["artifact_read_roles"], []any{"one", "two"}) {
		t.Errorf("%v", p)
	}
	d.Do(http.StatusOK, http.MethodPatch, "/v1/policy", map[string]any{"repair_enabled": true})
	d.Restart()
	if d.Get("/v1/policy")["repair_enabled"] != false {
		t.Error("the setting does not hold at each start")
	}
	d.Stop(syscall.SIGTERM)
	for bad, says := range map[string]string{"read=off": "read", "repair_enabled": "NAME=VALUE",
		"degraded.rate=7": "degraded.rate", "{": "JSON", "repair_enabled=maybe": "repair_enabled"} {
		_, errs, code := rig.Run(t, d.Env, "serve", "--listen", "127.0.0.1:0", "--policy", bad)
		if code != 2 || !strings.Contains(errs, says) || !strings.Contains(errs, "policy") {
			t.Errorf("%s: exit %d: %s", bad, code, errs)
		}
	}
	d.Start()
}

// 001:108: after a damaged registry was moved aside, a warm call enters its role again: it is listed, counted, and a
// tool that other programs are shown.
func TestSeed001Line108(t *testing.T) {
	rig.OnDisk(t, "nobody damages single files of a database")
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"geo.area": {rig.ProgGiven}, "atlas.area": {rig.ProgGiven}})
	d := rig.Start(t, m)
	s := d.Session("geo")
	d.Call(s, "area", 1)
	registry := filepath.Join(d.State(), "tools", "registry.json")
	d.Stop(syscall.SIGTERM)
	if err := os.WriteFile(registry, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Start()
	// its program is there, and nobody has registered it
	if all := d.List("/v1/tools"); len(all) != 1 || all[0]["revision"] != 0.0 {
		t.Errorf("before a call there are the tools %v", all)
	}
	d.WantValue(d.Call(s, "area", 2), 2, "persisted")
	d.Call(s, "area", 3)
	if tool := d.Get("/v1/tools/geo"); tool["usage_count"] != 2.0 {
		t.Errorf("the tool: %v", tool)
	}
	shown := d.LogOf(d.Call(d.Session("atlas"), "area", 1))["prompt_tools"]
	if list, _ := shown.([]any); !slices.Contains(list, any("geo")) {
		t.Errorf("the prompt shows %v", shown)
	}
}

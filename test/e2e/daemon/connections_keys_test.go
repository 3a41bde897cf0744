package daemon

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The model learns which connections a role may use, and only those: name, description, hosts and methods. Others are
// sent no credential.
func TestPromptNamesConnections(t *testing.T) {
	t.Parallel()
	a := newGuardedAPI(t, "bearer", "")
	m := rig.NewModel(t, rig.Script{"reporter.get": {progGet}, "reporter.first": {progGet}, "stranger.get": {progGet}})
	d := rig.Start(t, m, "--fetch-allow", "127.0.0.1")
	d.Call(d.Session("reporter"), "first", a.URL+"/ok")
	pipe(t, d, kindCanary("bearer"), "connections", "set", "weather", "--host", a.host(), "--description",
		"forecasts by city", "--role", "reporter")
	if r := d.Call(d.Session("reporter"), "get", a.URL+
		"/ok"); !strings.Contains(fmt.Sprint(r.Outcome.Value), "[masked]") {
		t.Errorf("reporter: %+v", r.Outcome)
	}
	r := d.Call(d.Session("stranger"), "get", a.URL+"/ok")
	if value, _ := r.Outcome.Value.(map[string]any); value["status"] != 401.0 {
		t.Errorf("stranger: %+v", r.Outcome)
	}
	line := "- weather: GET of http://" + a.host() + ": forecasts by city"
	for i, want := range []bool{false, true, false} {
		q := m.Questions()[i]
		if got := strings.Contains(q.User, line); got != want || strings.Contains(q.User, "<connections>") != want {
			t.Errorf("%s.%s is shown the connection: %v, want %v\n%s", q.Role, q.Method, got, want, q.User)
		}
	}
}

// A new secret counts at once, also for oauth2, without a restart.
func TestRotation(t *testing.T) {
	t.Parallel()
	a := newGuardedAPI(t, "header", "")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"reporter.get": {progGet}}), "--fetch-allow", "127.0.0.1")
	session := d.Session("reporter")
	set := func(secret string, more ...string) {
		pipe(t, d, secret, append([]string{"connections", "set", "weather"}, more...)...)
	}
	set("another-secret", "--host", a.host(), "--type", "header", "--name", "X-Api-Key")
	if r := d.Call(session, "get", a.URL+"/ok"); r.Outcome.OK ||
		!strings.Contains(r.Outcome.ErrorMessage, `the connection "weather"`) {
		t.Errorf("the wrong secret: %+v", r.Outcome)
	}
	set(kindCanary("header"))
	if r := d.Call(session, "get", a.URL+"/ok"); !r.Outcome.OK {
		t.Errorf("the right one: %+v", r.Outcome)
	}
	if n := a.accepted.Load(); n != 1 {
		t.Errorf("the API accepted %d requests, want 1", n)
	}
	if c := d.Get("/v1/connections/weather"); c["auth"].(map[string]any)["name"] != "X-Api-Key" ||
		c["revision"] != 2.0 {
		t.Errorf("the rotated connection: %v", c)
	}
}

// Without the key file, or with another, the daemon starts and says which connections cannot be used, and why. With the
// first one again all is as before.
func TestLostKey(t *testing.T) {
	t.Parallel()
	a := newGuardedAPI(t, "bearer", "")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"reporter.get": {progGet}}), "--fetch-allow", "127.0.0.1")
	session := d.Session("reporter")
	pipe(t, d, kindCanary("bearer"), "connections", "set", "weather", "--host", a.host())
	if r := d.Call(session, "get", a.URL+"/ok"); !r.Outcome.OK {
		t.Fatalf("before: %+v", r.Outcome)
	}
	key := filepath.Join(d.State(), "secrets.key")
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info, err)
	}
	fails := func(want string) {
		t.Helper()
		d.Start()
		if problem, _ := d.Get("/v1/connections/weather")["problem"].(string); !strings.Contains(problem, want) {
			t.Errorf("the connection says %q, want %q", problem, want)
		}
		r := d.Call(session, "get", a.URL+"/ok")
		if r.Outcome.OK || r.Outcome.ErrorType != "fetch_failed" ||
			!strings.Contains(r.Outcome.ErrorMessage, `the connection "weather" cannot be used`) ||
			!strings.Contains(r.Outcome.ErrorMessage, want) {
			t.Errorf("a call ends in %+v, want %q", r.Outcome, want)
		}
		if l := d.LogOf(r); l["failure_class"] != "extrinsic" {
			t.Errorf("failure_class %v", l["failure_class"])
		}
		out, _, _ := d.Client("doctor", "--listen", "127.0.0.1:0", "--output", "json")
		var findings []map[string]any
		if err := json.Unmarshal([]byte(out), &findings); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !slices.ContainsFunc(findings, func(f map[string]any) bool {
			return f["check"] == "secrets" && f["result"] == "warn" && strings.Contains(fmt.Sprint(f["detail"]), want)
		}) {
			t.Errorf("doctor: %v, want %q", findings, want)
		}
		d.Stop(syscall.SIGTERM)
	}
	d.Stop(syscall.SIGTERM)
	if err := os.Rename(key, key+".away"); err != nil {
		t.Fatal(err)
	}
	fails("missing")
	rig.WriteAt(t, key, "AGE-SECRET-KEY-1XM6DALS4HP5J2YN3XGQ35XHGNWPYE8YHQW8FSCGLDCT4HQ7V5GFSRS7KE0\n")
	fails("key file")
	if err := os.Rename(key+".away", key); err != nil {
		t.Fatal(err)
	}
	d.Start()
	if r := d.Call(session, "get", a.URL+"/ok"); !r.Outcome.OK {
		t.Errorf("with the key again: %+v", r.Outcome)
	}
	d.Do(http.StatusNoContent, http.MethodDelete, "/v1/connections/weather", nil)
	d.Restart()
	if all := d.List("/v1/connections"); len(all) != 0 {
		t.Errorf("a deleted connection is back: %v", all)
	}
}

// On a terminal the secret is asked for, and not shown.
func TestSecretOnATerminal(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	w := rig.OnTerminal(t, 120, 10, append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), "connections", "set",
		"weather", "--host", "api.example.org")
	w.Shows("secret of weather:")
	w.Changed()
	w.Press(kindCanary("bearer") + "\r")
	w.Shows("weather: set;")
	w.Ends(0)
	if strings.Contains(string(w.Bytes()), "cAnAry") {
		t.Errorf("the terminal shows the secret:\n%s", w.Bytes())
	}
	again := rig.OnTerminal(t, 120, 10, append(rig.Environment(d.Dir), "RECURGENT_URL="+d.URL), "connections", "set",
		"weather", "--host", "other.example.org")
	again.Shows("secret of weather:")
	again.Changed()
	again.Press("\x03")
	again.Ends(2)
	if c := d.Get("/v1/connections/weather"); c["revision"] != 1.0 || c["secret_set"] != true || c["problem"] != nil {
		t.Errorf("the connection: %v", c)
	}
}

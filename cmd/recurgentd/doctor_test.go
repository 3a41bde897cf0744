package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// doctor tells what serve would meet: the same confinement that a daemon states, a model that answers a real request,
// and each fault by its check, with an exit code for scripts.
func TestDoctor(t *testing.T) {
	d := newDaemon(t, nil)
	level, _ := d.get("/v1/version")["sandbox"].(map[string]any)["level"].(string)
	for _, tt := range []struct {
		name string
		env  []string
		args []string
		code int
		want map[string]string
	}{
		{"offline", nil, nil, 0, map[string]string{"settings": checkOK, "data": checkOK, "model": checkWarn, "clock": checkOK}},
		{"dead model", []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1"}, []string{"--provider-timeout", "5s"}, 1, map[string]string{"model": checkFail, "data": checkOK}},
		{"no data directory", nil, []string{"--data-dir", "/dev/null/state"}, 1, map[string]string{"data": checkFail}},
		{"bad setting", nil, []string{"--runners", "0"}, 1, map[string]string{"settings": checkFail}},
		{"port taken", nil, []string{"--listen", strings.TrimPrefix(d.url, "http://")}, 0, map[string]string{"port": checkWarn}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code := runBinary(t, append(cleanEnvironment(t.TempDir()), tt.env...), append([]string{"doctor", "--json"}, tt.args...)...)
			var findings []finding
			if err := json.Unmarshal([]byte(out), &findings); err != nil {
				t.Fatalf("%v: %s%s", err, out, errs)
			}
			got := map[string]finding{}
			for _, f := range findings {
				got[f.Check] = f
			}
			for check, want := range tt.want {
				if got[check].Result != want {
					t.Errorf("%s: %+v, want %s", check, got[check], want)
				}
			}
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, errs)
			}
			if s := got["sandbox"].Status; tt.want["settings"] != checkFail && (s == nil || string(s.Level) != level) {
				t.Errorf("doctor observes %+v, the daemon level %s", s, level)
			}
		})
	}
}

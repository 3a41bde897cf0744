package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The metrics name a namespace only where --metrics-namespaces does, and to nobody but an admin.
func TestMetricsNameNoNamespaceUnasked(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, nil)
	m.Otherwise(rig.ProgEcho)
	read := func(d *rig.Daemon, token string, status int) string {
		r := person(d, token, "").Send(http.MethodGet, "/metrics", nil, nil)
		if r.Status != status {
			t.Errorf("/metrics: %d %.200s", r.Status, r.Body)
		}
		return string(r.Body)
	}
	for _, c := range []struct {
		args []string
		want []string // of an admin's figures
		not  string
	}{
		{nil, nil, "namespace="},
		{[]string{"--metrics-namespaces", "a,unused"},
			[]string{`recurgent_namespace_calls_total{namespace="a",status="ok"} 1`,
				`recurgent_namespace_calls_total{namespace="other",status="ok"} 1`,
				`recurgent_namespace_model_requests_total{namespace="a"} 1`,
				`recurgent_namespace_model_requests_total{namespace="unused"} 0`,
				`recurgent_namespace_tokens_total{direction="prompt",namespace="other"}`}, `namespace="b"`},
		{[]string{"--metrics-namespaces", "a", "--metrics-public"},
			[]string{`recurgent_namespace_calls_total{status="ok"} 2`, "recurgent_namespace_model_requests_total 2"},
			"namespace="},
	} {
		d := guarded(t, m, c.args...).One() // each replica counts what it did
		for _, token := range []string{tokenA, tokenB} {
			x := person(d, token, "")
			x.Call(x.Session("clerk"), "greet", "x")
		}
		all := read(d, tokenRoot, http.StatusOK)
		for _, want := range c.want {
			if !strings.Contains(all, want) {
				t.Errorf("%v: no %s", c.args, want)
			}
		}
		if strings.Contains(all, c.not) {
			t.Errorf("%v: a namespace is named that the setting does not name", c.args)
		}
		if len(c.args) < 3 {
			read(d, tokenA, http.StatusForbidden)
			continue
		}
		for _, token := range []string{tokenA, ""} {
			if public := read(d, token, http.StatusOK); strings.Contains(public, "namespace=") ||
				strings.Contains(public, "clerk") {
				t.Errorf("%q is shown:\n%s", token, public)
			}
		}
	}
}

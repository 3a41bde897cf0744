//go:build ops

package daemon

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Prometheus's own linter accepts /metrics.
func TestOpsMetricsPassPromtool(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"calculator.add": {rig.ProgAdd}, "calculator.explode": {rig.ProgPanic}})
	d := rig.Start(t, m)
	s := d.Session("calculator")
	d.Call(s, "add", 1, 2)
	d.Call(s, "add", 1, 2)
	d.Call(s, "explode")
	metrics := d.Do(http.StatusOK, http.MethodGet, "/metrics", nil).Body
	passes(t, metrics, "promtool", "check", "metrics")
}

// The OpenAPI document passes a linter that we did not write.
func TestOpsOpenAPIPassesRedocly(t *testing.T) {
	t.Parallel()
	passes(t, nil, "redocly", "lint", "--config", "../../../api/redocly.yaml", "../../../api/openapi.yaml")
}

func passes(t *testing.T, stdin []byte, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %q: %v\n%s", name, args, err, out)
	}
}

package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The ETag with which an artifact or a tool was read keeps its reader from replacing or archiving what somebody else
// made of it meanwhile.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, nil))
	const tool = "/v1/tools/calculator"
	method := rig.MethodPath("calculator", "echo")
	send := func(status int, verb, path, header, value string) string {
		t.Helper()
		var body []byte
		if verb == http.MethodPut {
			body = rig.Encode(t, map[string]any{"code": rig.ProgEcho})
		}
		got := d.Send(verb, path, body, map[string]string{header: value})
		if got.Status != status {
			t.Errorf("%s %s with %s: %s: %d %s, want %d", verb, path, header, value, got.Status, got.Body, status)
		}
		if status >= 400 {
			rig.CheckProblem(t, path, got)
		}
		return got.Header.Get("ETag")
	}
	d.Do(http.StatusCreated, http.MethodPut, tool, map[string]any{"purpose": "adds"})
	send(http.StatusPreconditionFailed, http.MethodPut, method, "If-Match", "*")
	send(http.StatusPreconditionFailed, http.MethodPut, method, "If-Match", `"1"`)
	first := send(http.StatusOK, http.MethodPut, method, "If-None-Match", "*")
	send(http.StatusPreconditionFailed, http.MethodPut, method, "If-None-Match", "*")
	second := send(http.StatusOK, http.MethodPut, method, "If-Match", first)
	send(http.StatusPreconditionFailed, http.MethodPut, method, "If-Match", first)
	send(http.StatusBadRequest, http.MethodPut, method, "If-Match", "seven")
	if got := d.Artifact("calculator", "echo")["current_generation"]; got != "gen-2" || first == second {
		t.Errorf("the current generation is %v", got)
	}
	for _, path := range []string{method, tool} {
		send(http.StatusPreconditionFailed, http.MethodDelete, path, "If-Match", `"99"`)
		send(http.StatusPreconditionFailed, http.MethodDelete, path, "If-None-Match", "*")
		send(http.StatusBadRequest, http.MethodDelete, path, "If-Match", "seven")
		now := d.Send(http.MethodGet, path, nil, nil).Header.Get("ETag")
		if strings.Trim(now, `"`) == "" {
			t.Fatalf("%s has no ETag", path)
		}
		send(http.StatusNoContent, http.MethodDelete, path, "If-Match", now)
		send(http.StatusPreconditionFailed, http.MethodDelete, path, "If-Match", "*")
	}
}

package sandbox

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

func TestStatus(t *testing.T) {
	p := nativePool(t, nil)
	t.Log(p.Status())
}

func TestRun(t *testing.T) {
	p := nativePool(t, nil)
	for _, c := range []struct {
		source, want string
		args         []any
	}{
		{"echo", `value [1,"zwei",{"drei":null}]`, []any{1, "zwei", map[string]any{"drei": nil}}},
		{"fail", `authored low_utility: nothing found`, nil},
		{"passes", `retriable closed: not now: opens at eight`, nil},
		{"plain", `authored tool_error: plain`, nil},
		{"oddtype", `authored tool_error: x`, nil},
		{"panic", `failure execution/panic`, nil},
		{"exit", `failure runner_crash/exit`, nil},
		{"nan", `failure non_serializable_result/`, nil},
		{"channel", `failure non_serializable_result/`, nil},
		{"bigvalue", `failure non_serializable_result/`, nil},
		{"deepvalue", `failure non_serializable_result/`, nil},
		{"badcontext", `failure non_serializable_result/context`, nil},
		{"stack", `failure resource_exhausted/stack`, nil},
		{"memory", `failure resource_exhausted/memory`, nil},
		{"huge", `failure resource_exhausted/memory`, nil},
		{"maprace", `failure execution/map_race`, nil},
		{"gopanic", `failure execution/goroutine_panic`, nil},
		{"leak", `value "leaked"`, nil},
		{"history", `value 1`, nil},
		{"content", `value ["content of a",null]`, nil},
		{"askloop", `failure resource_exhausted/asks`, nil},
		{"stderr", `failure runner_crash/flood`, nil},
		{"openfile", `authored tool_error: open /etc/passwd: operation not permitted`, nil},
		{"refuse invalid_code", `failure invalid_code/gate`, nil},
		{"refuse dependency_policy_violation", `failure dependency_policy_violation/gate`, nil},
		{"compilepanic", `failure runner_crash/engine`, nil},
	} {
		if wire.RaceBuild && strings.HasSuffix(c.want, "/memory") {
			continue // a race build has no data limit
		}
		got := p.Run(t.Context(), request(c.source, c.args...), &fakeHost{})
		if said(got) != c.want {
			t.Errorf("%s: %s, want %s (%+v)", c.source, said(got), c.want, got.Failure)
		}
		if got := said(p.Run(t.Context(), request("echo", "control"), &fakeHost{})); got != `value ["control"]` {
			t.Fatalf("after %s the control call says %s", c.source, got)
		}
	}
}

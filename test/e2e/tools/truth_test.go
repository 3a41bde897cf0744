package tools

import (
	"net/http"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Programs of the tax scenario: what is left of a gross income.
var (
	progTax60   = rig.Program("\tgross, _ := call.Arg(0, \"gross\").(float64)\n\treturn gross * 0.6, nil")
	progTax70   = rig.Program("\tgross, _ := call.Arg(0, \"gross\").(float64)\n\treturn gross * 0.7, nil")
	progTax80   = rig.Program("\tgross, _ := call.Arg(0, \"gross\").(float64)\n\treturn gross * 0.8, nil")
	progTaxBoom = rig.Program("\tif call.Arg(0, \"gross\") != nil {\n\t\tpanic(\"no tax today\")\n\t}\n\treturn 0, nil")
)

func list(items ...any) []any { return append([]any{}, items...) }

// delaysOfHours has failed forging wait an hour, and then two: no test takes so long that a delay is over before it
// puts the clock ahead.
var delaysOfHours = object{"backoff": object{"base_seconds": 3600, "max_seconds": 86_400}}

// verdict judges the call, waits for the first attempt at a correction, and returns what follows.
func verdict(d *rig.Daemon, r rig.Reply, body object) object {
	d.T.Helper()
	got := d.Send(http.MethodPost, "/v1/calls/"+r.CallID+"/verdict", rig.Encode(d.T, body),
		map[string]string{"Prefer": "wait=60"})
	if got.Status != http.StatusOK {
		d.T.Fatalf("verdict on %s: status %d: %s", r.CallID, got.Status, got.Body)
	}
	return got.Object(d.T)
}

// refused wants the verdict to be refused with the status and the code.
func refused(d *rig.Daemon, callID string, body object, status int, code string) {
	d.T.Helper()
	got := d.Send(http.MethodPost, "/v1/calls/"+callID+"/verdict", rig.Encode(d.T, body), nil)
	rig.CheckProblem(d.T, callID, got)
	if got.Status != status || got.Object(d.T)["code"] != code {
		d.T.Errorf("verdict %v: status %d, %s, want %d %s", body, got.Status, got.Body, status, code)
	}
}

// wantCorrection checks the state of the method's correction, and returns it.
func wantCorrection(d *rig.Daemon, role, method, state string) object {
	d.T.Helper()
	c, _ := d.Artifact(role, method)["correction"].(object)
	if c["state"] != state {
		d.T.Errorf("the correction of %s.%s is %v, want %s", role, method, c, state)
	}
	return c
}

// examples sets the examples of the method and returns those that are kept.
func examples(d *rig.Daemon, role, method string, all ...object) []any {
	d.T.Helper()
	kept, _ := d.Do(http.StatusOK, http.MethodPut, rig.MethodPath(role, method)+"/examples",
		object{"examples": all}).Object(d.T)["examples"].([]any)
	return kept
}

func example(value any, args ...any) object {
	return object{"args": list(args...), "expect": object{"value": value}}
}

// operate performs a person's operation on the method and returns the artifact after it.
func operate(d *rig.Daemon, role, method, action string, body object) object {
	d.T.Helper()
	return d.Do(http.StatusOK, http.MethodPost, rig.MethodPath(role, method)+"/"+action, body).Object(d.T)
}

// generation is the kept generation of that id.
func keptGeneration(d *rig.Daemon, role, method, id string) object {
	d.T.Helper()
	for _, g := range d.List(rig.MethodPath(role, method) + "/generations") {
		if g["id"] == id {
			return g
		}
	}
	d.T.Fatalf("%s.%s has no %s", role, method, id)
	return nil
}

// asked counts the requests for the method.
func asked(m *rig.Model, role, method string) int { return m.Count(role, method) }

func programReply(program string) openaitest.Reply { return openaitest.Code(program) }

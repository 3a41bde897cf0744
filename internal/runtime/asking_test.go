package runtime

import (
	"strings"
	"testing"
)

// What an operator wants of a new program, and the form of the session's memory, reach the model; the memory's values and
// a reason that the daemon made up do not.
func TestAskedInContext(t *testing.T) {
	r, model := newRuntime(t, map[string][]string{"r.m": {run(`call.Context["notes"] = []any{map[string]any{"id": 1, "text": "a se" + "cret thing"}}; return call.Arg(0, "v"), nil`),
		run(`return call.Arg(0, "v"), nil`)}})
	_, call := conversation(t, r, SessionRequest{Role: "r"})
	call("m", 1)
	for i, c := range []struct{ reason, want string }{
		{"ties go to the <last> one", "<operator_reason>ties go to the &lt;last> one</operator_reason>"}, {"", ""}, {reforgePrefix + "r1", ""},
	} {
		if _, err := r.Operate(t.Context(), "r", "m", Operation{Action: "regenerate", Reason: c.reason, Actor: "me"}); err != nil {
			t.Fatal(err)
		}
		call("m", 1)
		if n := model.count("r.m", ""); n != i+2 {
			t.Fatalf("%d requests, want %d", n, i+2)
		}
		user := lastUser(model.requests[i+1])
		if !strings.Contains(user, c.want) || c.want == "" && strings.Contains(user, "operator") {
			t.Errorf("reason %q: the request lacks %q, or tells of an operator:\n%s", c.reason, c.want, user)
		}
		if !strings.Contains(user, "<earlier_program>\npackage tool") {
			t.Errorf("the program whose answers must stay is not told:\n%s", user)
		}
		if !strings.Contains(user, "notes: array of {id: number, text: string}") || strings.Contains(user, "a secret thing") {
			t.Errorf("the form of the context is not told, or its values are:\n%s", user)
		}
	}
}

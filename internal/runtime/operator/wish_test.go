package operator_test

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/forge"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// The prompt contains an operator's reason for a new program and the schema of the session's context, but neither the
// values of the context nor a reason made up by the daemon.
func TestAskedInContext(t *testing.T) {
	t.Parallel()
	g := newRig(t, map[string][]string{"r.m": {run(
		`call.Context["notes"] = []any{map[string]any{"id": 1, "text": "a se" + "cret thing"}}; return call.Arg(0, "v"), nil`),
		run(`return call.Arg(0, "v"), nil`)}})
	call := g.conversation(t, "r")
	call("m", 1)
	for i, c := range []struct{ reason, want string }{
		{"ties go to the <last> one", "<operator_reason>ties go to the <last> one</operator_reason>"}, {"", ""},
		{forge.ReforgePrefix + "r1", ""},
	} {
		if _, err := g.op.Operate(t.Context(), "r", "m", operator.Operation{Action: "regenerate", Reason: c.reason,
			Actor: "me"}); err != nil {
			t.Fatal(err)
		}
		call("m", 1)
		if n := g.model.Count("r.m", ""); n != i+2 {
			t.Fatalf("%d requests, want %d", n, i+2)
		}
		user := lastUser(g.model.Requests()[i+1])
		if !strings.Contains(user, c.want) || c.want == "" && strings.Contains(user, "operator") {
			t.Errorf("reason %q: the request lacks %q, or mentions an operator:\n%s", c.reason, c.want, user)
		}
		if !strings.Contains(user, "<earlier_program>\npackage tool") {
			t.Errorf("the request lacks the program whose answers must stay:\n%s", user)
		}
		if !strings.Contains(user, "notes: array of {id: number, text: string}") ||
			strings.Contains(user, "a secret thing") {
			t.Errorf("the request lacks the schema of the context, or has its values:\n%s", user)
		}
	}
}

func lastUser(q provider.Request) string { return q.Messages[len(q.Messages)-1].Content }

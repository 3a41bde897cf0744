package daemon

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// That a tool's answers were weak stands in the requests of whoever may use it, and says of another person's answers
// nothing but what the registered contract names.
func TestWeakAnswersShowNothing(t *testing.T) {
	t.Parallel()
	const canary = "canary-of-ann-4711"
	weak := rig.Program("\treturn map[string]any{\"status\": \"no results\", \"movies\": []any{}, call.Arg(0, \"who\").(string): []any{}}, nil")
	builds := rig.Program("\treturn call.Tool(\"cinema\").Call(\"list\", \"bens\").OK(), nil")
	m := rig.NewModel(t, rig.Script{"cinema.list": {weak}, "club.movies": {builds, builds}})
	// evidence is each replica's until it is written
	d := rig.Start(t, m, "--auth-tokens-file", rig.WriteFile(t, "tokens",
		"ann token-of-ann-in-a-0001\nben token-of-ben-in-a-0002\n")).One()
	ann, ben := person(d, "token-of-ann-in-a-0001", ""), person(d, "token-of-ben-in-a-0002", "")
	ann.Do(http.StatusCreated, http.MethodPut, "/v1/tools/cinema",
		object{"purpose": "movies on show", "deliverable": object{"type": "object", "required": []any{"movies"}}})
	s := ann.Session("cinema")
	first := ann.Call(s, "list", canary)
	for range 3 {
		ann.Call(s, "list", canary)
	}
	of := ben.Session("club")
	ben.Call(of, "movies", 1)
	ben.Do(http.StatusOK, http.MethodPost, "/v1/tools/club/methods/movies/regenerate", object{})
	ben.Call(of, "movies", 2)
	var marks int
	for _, q := range m.Requests() {
		if q.Role != "club" {
			continue
		}
		marks += strings.Count(q.Text, "empty_array:/movies") // in the list of tools, and in the evidence
		if strings.Contains(q.Text, canary) || strings.Contains(q.Text, first.CallID) || strings.Contains(q.Text, s) {
			t.Errorf("ben's request shows what is of ann:\n%s", q.Text)
		}
	}
	if marks < 3 {
		t.Errorf("ben's requests say %d times that the tool's answers were weak", marks)
	}
}

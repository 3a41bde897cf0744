package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 003:21, 95: of a value whose keys differ from the contract's only by case, the violation names the keys to use, the
// model repairs the program by it, and no value is rewritten.
func TestSeed003Line21(t *testing.T) {
	t.Parallel()
	untagged := rig.Program("\t_ = call.Args\n\treturn struct {\n\t\tStatus string\n\t\tMovies []string\n\t}{\"ok\", []string{\"Up\"}}, nil")
	tagged := rig.Program("\t_ = call.Args\n\treturn map[string]any{\"status\": \"ok\", \"movies\": []string{\"Up\"}}, nil")
	m := rig.NewModel(t, rig.Script{"cinema.list": {untagged, tagged}})
	d := rig.Start(t, m)
	s := d.Session("cinema", object{"contract": object{"purpose": "movies on show",
		"deliverable": object{"type": "object", "required": []any{"status", "movies"}}}})
	d.WantValue(d.Call(s, "list"), object{"status": "ok", "movies": []any{"Up"}}, "")
	if asked := m.LastQuestion().User; !strings.Contains(asked, `its key "Status" must be "status"`) ||
		!strings.Contains(asked, `its key "Movies" must be "movies"`) {
		t.Errorf("the repair was asked for with:\n%s", asked)
	}
}

// 003:125: a misspelt constraint is refused by name where a person writes it, and reported where a program does.
func TestSeed003Line125(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"host.ask": {rig.Program(
		"\tlist := call.Delegate(\"cinema\", recurgent.Contract{Purpose: \"movies\", Deliverable: map[string]any{\"type\": \"array\", \"minitems\": 1, \"maxItems\": -1, \"max_items\": 5}})\n\treturn list.Call(\"list\").Value, nil")},
		"cinema.list": {rig.Program("\treturn []any{}, nil")}})
	d := rig.Start(t, m)
	bad := object{"purpose": "movies", "deliverable": object{"type": "object",
		"constraints": object{"properties": object{"movies": object{"type": "array", "min_itmes": 1}}}}}
	p := d.Do(http.StatusUnprocessableEntity, http.MethodPut, "/v1/tools/cinema", bad).Object(t)
	text := string(rig.MustJSON(p))
	if !strings.Contains(text, "/deliverable/constraints/properties/movies/min_itmes") ||
		!strings.Contains(text, "it is written minItems") {
		t.Errorf("the refusal: %s", text)
	}
	got := d.Call(d.Session("host"), "ask", "movies")
	d.WantValue(got, []any{}, "generated")
	warned := string(rig.MustJSON(d.LogOf(got)["warnings"]))
	for _, part := range []string{"/minitems is no constraint: it is written minItems", "/max_items",
		"/maxItems must be a whole number"} {
		if !strings.Contains(warned, part) {
			t.Errorf("the log warns of %s, and not of %s", warned, part)
		}
	}
	if kept := d.Get("/v1/tools/cinema")["deliverable"]; !rig.Equal(kept, object{"type": "array"}) {
		t.Errorf("the registry shows %s as checked", rig.MustJSON(kept))
	}
}

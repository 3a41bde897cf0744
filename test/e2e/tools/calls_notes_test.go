package tools

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Notes of a program are in the call's log entry and in why, masked and bounded, whether the call ends ok or not;
// callers do not see it.
func TestNotesOfPrograms(t *testing.T) {
	t.Parallel()
	notes := rig.Program("\tcall.Log(\"%v rows for %v\", 3, call.Arg(0, \"for\"))\n\tfor i := range 200 {\n\t\tcall.Log(\"row %d %s\", i, strings.Repeat(\"x\", 3000))\n\t}\n"+
		"\tif call.Arg(0, \"for\") == \"nobody\" {\n\t\treturn nil, recurgent.Fail(\"not_today\", \"no\")\n\t}\n\treturn call.Arg(1, \"password\") != nil, nil", "strings")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"r.m": {notes}}))
	s := d.Session("r")
	for _, who := range []string{"ann", "nobody"} {
		body := map[string]any{"method": "m", "args": []any{who},
			"kwargs": map[string]any{"password": "hunter2hunter2"}}
		if who == "ann" {
			body["args"] = []any{"hunter2hunter2"}
		}
		got := d.Invoke(s, body)
		line := d.LogOf(got)
		list, _ := line["notes"].([]any)
		if len(list) != 100 || strings.Contains(fmt.Sprint(list[0]), "hunter2") ||
			!strings.HasPrefix(fmt.Sprint(list[0]), "3 rows for ") || len(fmt.Sprint(list[1])) > 1100 ||
			!strings.HasPrefix(fmt.Sprint(list[99]), "row 98 ") {
			t.Errorf("%s: %d notes, %.200v", who, len(list), list)
		}
		if text := string(rig.MustJSON(got)); strings.Contains(text, "3 rows") {
			t.Errorf("the caller sees %s", text)
		}
		page := string(d.Send(http.MethodGet, "/v1/calls/"+got.CallID+"/why", nil,
			map[string]string{"Accept": "text/plain"}).Body)
		if !strings.Contains(page, "What its program noted\n  3 rows for ") {
			t.Errorf("why:\n%.1500s", page)
		}
	}
}

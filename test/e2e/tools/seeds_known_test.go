package tools

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// knownIn returns the known tools of the newest request, a line for each, without their heading.
func knownIn(m *rig.Model) string {
	_, known, _ := strings.Cut(m.LastQuestion().User, "<known_tools>\n")
	known, _, _ = strings.Cut(known, "</known_tools>")
	_, known, _ = strings.Cut(known, "\n")
	return known
}

// 001:391, 94: what is switched off stands in no prompt and in no listing for programs: a method in quarantine is left
// out of its tool, a tool whose programs are not read has no methods, and one that was only made by them is not known.
// Switched on again, all of it is there again.
func TestSeed001Line391SwitchedOffIsNotKnown(t *testing.T) {
	t.Parallel()
	weak := rig.Program("\treturn map[string]any{\"status\": \"no results\", \"films\": []any{}, \"for\": call.Arg(0, \"evening\")}, nil")
	lists := rig.Program("\treturn call.Tools(), nil")
	shows := rig.Program("\treturn call.Tool(\"cinema\").Call(\"listFilms\", call.Arg(0, \"day\")).Value, nil")
	m := rig.NewModel(t, rig.Script{"cinema.listFilms": {weak}, "cinema.rateFilm": {rig.ProgGiven},
		"bar.mixDrink": {rig.ProgGiven}, "host.show": {shows}, "host.list": {lists}})
	m.Otherwise(rig.ProgGiven)
	d := rig.Start(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/cinema", object{"purpose": "films on show"})
	s := d.Session("host")
	d.Call(s, "show", "monday")
	d.Call(d.Session("cinema"), "rateFilm", 1)
	d.Call(d.Session("bar"), "mixDrink", 1)
	n := 0
	check := func(state string, methods, tools string) {
		t.Helper()
		n++
		d.Call(d.Session("guest"), fmt.Sprintf("films%d", n), "listFilms or mixDrink") // who has no program yet
		known := knownIn(m)
		for _, name := range []string{"listFilms(evening", "rateFilm(", "mixDrink(", "cinema", "bar"} {
			if got, want := strings.Contains(known, name), strings.Contains(" "+methods+" "+tools,
				" "+name); got != want {
				t.Errorf("%s: that the known tools have %s is %v:\n%s", state, name, got, known)
			}
		}
		listed, _ := d.Call(d.Session("host"), "list").Outcome.Value.(map[string]any)
		for _, name := range []string{"cinema", "bar"} {
			tool, there := listed[name].(map[string]any)
			if want := strings.Contains(tools, name); there != want {
				t.Errorf("%s: that a program is listed %s is %v", state, name, there)
			}
			for _, method := range []string{"listFilms", "rateFilm", "mixDrink"} {
				if of := fmt.Sprint(tool["methods"]); strings.Contains(of, method) &&
					!strings.Contains(methods, method) {
					t.Errorf("%s: a program is listed %s with %s", state, name, of)
				}
			}
		}
	}
	const all = "listFilms(evening rateFilm( mixDrink("
	check("all on", all, "cinema bar")
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/cinema/methods/listFilms/quarantine", object{"reason": "wrong"})
	check("quarantine", "rateFilm( mixDrink(", "cinema bar")
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/host/methods/show/regenerate", object{})
	d.Call(s, "show", "tuesday")
	if asked := m.LastQuestion().User; strings.Contains(asked, "answers of cinema") ||
		strings.Contains(asked, "weak answers") || strings.Contains(asked, "listFilms(evening") {
		t.Errorf("the builder is shown what is in quarantine:\n%s", asked)
	}
	d.Policy(object{"artifact_read_roles": list("bar", "host")})
	check("not a canary role", "mixDrink(", "cinema bar")
	d.Policy(object{"artifact_read_roles": list()})
	for _, off := range []object{{"artifact_read_enabled": false}, {"force_generation": true}} {
		d.Policy(off)
		check(fmt.Sprint(off), "", "cinema")
		d.Policy(object{"artifact_read_enabled": true, "force_generation": false})
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/cinema/methods/listFilms/release", object{"reason": "right"})
	check("all on again", all, "cinema bar")
}

// 003:201: who asks for a repair, or for another program, sees the tools that the failing program calls with their weak
// marks, also where others have more to do with the task than there is room for.
func TestSeed003Line201CalledToolsAreShown(t *testing.T) {
	t.Parallel()
	weak := rig.Program("\treturn map[string]any{\"status\": \"no results\", \"rows\": []any{}, \"for\": call.Arg(0, \"q\")}, nil")
	repaired := rig.Program("\treturn call.Tool(\"zzz\").Call(\"fetch\", call.Arg(0, \"day\")).OK(), nil")
	breaks := rig.Program("\tv := call.Tool(\"zzz\").Call(\"fetch\", call.Arg(0, \"day\"))\n\tif call.Arg(0, \"day\") == \"friday\" {\n\t\tpanic(\"no friday\")\n\t}\n\treturn v.OK(), nil")
	m := rig.NewModel(t, rig.Script{"zzz.fetch": {weak}, "concert planner.plan": {breaks, repaired},
		"concert planner.first": {breaks, repaired}})
	d := rig.Start(t, m)
	d.Policy(object{"known_tools_prompt_limit": 4})
	for i := range 8 {
		d.Do(http.StatusCreated, http.MethodPut, fmt.Sprintf("/v1/tools/concert%d", i),
			object{"purpose": "plans the concert of a friday, first and last"})
	}
	s := d.Session("concert planner")
	d.Call(s, "plan", "monday")
	if strings.Contains(knownIn(m), "zzz") {
		t.Errorf("nothing leads to the tool before a program calls it:\n%s", knownIn(m))
	}
	for _, method := range []string{"plan", "first"} { // a stored program and a new one
		d.Call(s, method, "friday")
		asked := m.LastQuestion()
		if known := knownIn(m); asked.Kind != "repair" || !strings.HasPrefix(known, "- zzz (methods: fetch(q") ||
			!strings.Contains(strings.SplitN(known, "\n", 2)[0], "[weak answers, ") || strings.Count(known, "\n") != 4 {
			t.Errorf("%s: the %s shows\n%s", method, asked.Kind, known)
		}
		if !strings.Contains(asked.User, "answers of zzz.fetch, which the program called, were weak") {
			t.Errorf("%s: the evidence says nothing of it:\n%s", method, asked.User)
		}
	}
}

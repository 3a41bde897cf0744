package tools

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 003, metrics: the rate of weak successes counts calls; a separate counter counts reasons.
func TestSeed003WeakSuccessRateCountsCalls(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak}}))
	s := d.Session("movie finder", map[string]any{"contract": rig.MovieContract})
	for range 5 {
		d.Call(s, "find", "action")
	}
	d.Call(s, "find", "drama")
	for series, want := range map[string]float64{
		`recurgent_weak_success_calls_total`:                        5,
		`recurgent_weak_successes_total{reason="success_no_parse"}`: 5,
		`recurgent_weak_successes_total{reason="empty_array"}`:      5,
	} {
		if got := d.Metric(series); got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if n := len(d.List("/v1/calls?weak_success=true")); n != 5 {
		t.Errorf("%d calls are weak, want 5", n)
	}
}

// 003:182: an empty array in any object with a success status is a weak success, also without a contract. The outcome
// does not change.
func TestSeed003Line182(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"finder.find": {rig.ProgGiven}}))
	plain := d.Session("finder")
	tight := d.Session("finder",
		object{"contract": object{"deliverable": object{"type": "object", "required": []any{"status"}}}})
	for _, tt := range []struct {
		value any
		want  []any
	}{
		{object{"status": "success", "movies": []any{}}, []any{"empty_array:/movies"}},
		{object{"status": "OK", "movies": []any{"A"}, "actors": []any{}}, []any{"empty_array:/actors"}},
		{object{"status": "failed", "movies": []any{}}, nil},
		{object{"status": "no idea", "movies": []any{}}, nil},
		{object{"status": "x", "pages": []any{object{"status": "ok", "items": []any{}},
			object{"status": "ok", "items": []any{}}}}, []any{"empty_array:/pages/*/items"}},
		{object{"status": "success", "page": object{"items": []any{}}}, nil},
		{object{"status": "success", "movies": []any{"A"}}, nil},
	} {
		for _, s := range []string{plain, tight} {
			got := d.Call(s, "find", tt.value)
			d.WantValue(got, tt.value, "")
			want := tt.want
			if want == nil {
				want = []any{}
			}
			if e := d.LogOf(got); !rig.Equal(want, e["weak_success_reasons"]) || e["weak_success"] != (len(want) > 0) {
				t.Errorf("%v: weak %v for %v, want %v", tt.value, e["weak_success"], e["weak_success_reasons"], want)
			}
		}
	}
	d.Policy(object{"weak_success": object{"success_statuses": []any{"no idea"}}})
	for value, want := range map[string]bool{"no idea": true, "success": false} {
		if e := d.LogOf(d.Call(plain, "find", object{"status": value, "movies": []any{}})); e["weak_success"] != want {
			t.Errorf("status %q with a vocabulary of one's own: weak %v", value, e["weak_success"])
		}
	}
}

// 003:201: weak answers of a tool are pressure on who delegates to it: they stand in the evidence for a program that
// called it and beside the tool in the list of known ones, where they lower its place.
func TestSeed003Line201Builders(t *testing.T) {
	t.Parallel()
	weak := rig.Program("\treturn map[string]any{\"Status\": \"No Results\", \"movies\": []any{}, \"for\": call.Args}, nil")
	good := rig.Program("\treturn map[string]any{\"status\": \"ok\", \"movies\": []any{\"Up\"}, \"for\": call.Args}, nil")
	builds := rig.Program("\tcall.Tool(\"cinema two\").Call(\"list\", call.Arg(0, \"day\"))\n\treturn call.Tool(\"cinema one\").Call(\"list\", call.Arg(0, \"day\")).OK(), nil")
	m := rig.NewModel(t, rig.Script{"cinema one.list": {weak}, "cinema two.list": {good}, "host.show": {builds, builds},
		"club.movies": {rig.ProgGiven}})
	d := rig.Start(t, m)
	for _, role := range []string{"cinema one", "cinema two"} {
		d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/"+url.PathEscape(role),
			object{"purpose": "movies on show", "deliverable": object{"type": "object", "required": []any{"movies"}}})
	}
	s := d.Session("host")
	for day := range 3 {
		d.Call(s, "show", day)
	}
	d.Do(http.StatusOK, http.MethodPost, "/v1/tools/host/methods/show/regenerate", object{})
	d.Call(s, "show", 4)
	const why = "empty_array:/movies, weak_status:/status=no_results"
	if asked := m.LastQuestion().User; !strings.Contains(asked,
		"answers of cinema one.list, which the program called, were weak, 3 of its last 3: "+why) ||
		strings.Contains(asked, "answers of cinema two") {
		t.Errorf("the builder is asked for with:\n%s", asked)
	}
	d.Call(d.Session("club"), "movies", 1)
	known := m.LastQuestion().User
	one, two := strings.Index(known, "cinema one"), strings.Index(known, "cinema two")
	if line, _, _ := strings.Cut(known[max(0, one):], "\n"); one < 0 || two < 0 || two > one ||
		!strings.Contains(line, "[weak answers, 4 of its last 4: "+why+"]") ||
		strings.Count(known, "[weak answers") != 1 {
		t.Errorf("the known tools:\n%s", known)
	}
}

package tools

import (
	"net/http"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A givenCall is a call of a stored program: its value, or what its outcome's metadata has.
type givenCall struct {
	args   []any
	kwargs map[string]any
	want   any
	refuse map[string]any
}

// wantGiven forges a program by the call of the first case, and checks that and the others.
func wantGiven(t *testing.T, program openaitest.Reply, calls ...givenCall) {
	t.Helper()
	m := rig.NewModel(t, rig.Script{"given.of": {program}})
	d := rig.Start(t, m)
	s := d.Session("given")
	for i, c := range calls {
		got := d.Invoke(s, map[string]any{"method": "of", "args": c.args, "kwargs": c.kwargs})
		switch {
		case c.refuse != nil:
			wantRefused(d, t, got, c.refuse)
		case i == 0:
			d.WantValue(got, c.want, "generated")
		default:
			d.WantValue(got, c.want, "persisted")
		}
	}
}

// within keeps the numbers of a list that are within bounds. The bounds are read in the places given.
func within(bounds string, imports ...string) string {
	return rig.Program("\tlo, hi := 0.0, 100.0\n"+bounds+`
	list, ok := call.Arg(0, "values").([]any)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "values must be a list")
	}
	out := []float64{}
	for _, v := range list {
		if f, ok := v.(float64); ok && f >= lo && f <= hi {
			out = append(out, f)
		}
	}
	return out, nil`, imports...)
}

// A program that reads declared parameters from all keywords gets positional arguments by name, and refuses those
// beyond its parameters.
func TestPositionsReachAllKeywords(t *testing.T) {
	t.Parallel()
	list := []any{1, 50, 200}
	for name, code := range map[string]string{
		"a struct": within(`	raw, err := json.Marshal(call.Kwargs)
	if err != nil {
		return nil, err
	}
	opt := struct {
		Min float64 `+"`json:\"min\"`"+`
		Max float64 `+"`json:\"max\"`"+`
	}{lo, hi}
	if err := json.Unmarshal(raw, &opt); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	lo, hi = opt.Min, opt.Max`, "encoding/json"),
		"a loop": within(`	for k, v := range call.Kwargs {
		f, ok := v.(float64)
		switch k {
		case "values":
			continue
		case "min":
			lo = f
		case "max":
			hi = f
		}
		if !ok {
			return nil, recurgent.Fail("invalid_input", k+" must be a number")
		}
	}`)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantGiven(t, declares(code, "values", "min?", "max?"),
				givenCall{args: []any{list}, want: []any{1, 50}},
				givenCall{args: []any{list, 10}, want: []any{50}},
				givenCall{args: []any{list, 10, 300}, want: []any{50, 200}},
				givenCall{args: []any{list, 10}, kwargs: map[string]any{"max": 300}, want: []any{50, 200}},
				givenCall{args: []any{list, 0, 100, 5}, refuse: map[string]any{"surplus_arguments": 1.0}})
		})
	}
}

// An argument that is given twice is refused, whichever of both the program would read.
func TestArgumentsGivenTwice(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"a call of Arg": rig.Program("\treturn []any{call.Arg(0, \"name\"), call.Arg(1, \"greeting\")}, nil"),
		"Bind": rig.Program("\tvar in struct {\n\t\tName any `json:\"name\"`\n\t\tGreeting any `json:\"greeting\"`\n\t}\n" +
			"\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", err.Error())\n\t}\n" +
			"\treturn []any{in.Name, in.Greeting}, nil"),
		"keywords": rig.Program("\treturn []any{call.Kwargs[\"name\"], call.Kwargs[\"greeting\"]}, nil")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantGiven(t, declares(code, "name", "greeting?"),
				givenCall{args: []any{"Ann"}, kwargs: map[string]any{"greeting": "Hi"}, want: []any{"Ann", "Hi"}},
				givenCall{args: []any{"Ann"}, kwargs: map[string]any{"name": "Bob"}, refuse: map[string]any{}},
				givenCall{args: []any{"Ann", "Hi"}, kwargs: map[string]any{"greeting": "Yo"}, refuse: map[string]any{}},
				givenCall{args: []any{"Ann", "Hi"}, want: []any{"Ann", "Hi"}})
		})
	}
}

// An optional argument that is left out becomes no null where the program counts its positional arguments.
func TestArgumentsLeftOut(t *testing.T) {
	t.Parallel()
	code := rig.Program(`	start, stop, step := 0.0, 0.0, 1.0
	number := func(i int) float64 { n, _ := call.Args[i].(float64); return n }
	switch len(call.Args) {
	case 1:
		stop = number(0)
	case 2:
		start, stop = number(0), number(1)
	case 3:
		start, stop, step = number(0), number(1), number(2)
	}
	return []any{start, stop, step}, nil`)
	wantGiven(t, declares(code, "start", "stop?", "step?"),
		givenCall{args: []any{1, 10, 3}, want: []any{1, 10, 3}},
		givenCall{args: []any{1}, kwargs: map[string]any{"stop": 4}, want: []any{1, 4, 1}},
		givenCall{args: []any{1}, kwargs: map[string]any{"step": 2},
			refuse: map[string]any{"missing_parameters": []any{"stop"}}},
		givenCall{kwargs: map[string]any{"stop": 4, "step": 2, "start": 1}, want: []any{1, 4, 2}})
}

// A first program that reads by position alone, for a call that leaves an earlier argument out, goes back to the model.
func TestFirstProgramTakesWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	byPlace := declares(rig.Program("\tif len(call.Args) < 3 {\n\t\treturn \"few\", nil\n\t}\n"+
		"\treturn []any{call.Args[0], call.Args[1], call.Args[2]}, nil"), "a", "b?", "c?")
	m := rig.NewModel(t, rig.Script{"given.of": {byPlace, declares(joins("a", "b", "c"), "a", "b?", "c?")}})
	d := rig.Start(t, m)
	got := d.Invoke(d.Session("given"), map[string]any{"method": "of", "args": []any{1}, "kwargs": map[string]any{"c": 3}})
	d.WantValue(got, []any{1, 3}, "generated")
	if n := m.Count("given", "of"); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// gross reads its two numbers by Bind, whose fields have another order than its author declares.
var gross = declares(rig.Program("\tin := struct {\n\t\tRate float64 `json:\"rate\"`\n\t\tNet float64 `json:\"net\"`\n\t}{Rate: 19}\n"+
	"\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", err.Error())\n\t}\n"+
	"\treturn in.Net * (100 + in.Rate) / 100, nil"), "net", "rate?")

// Where a program is declared in another order than it reads, a call by position goes back to the model, however often
// it sends the same; after a call by name the declared order holds.
func TestDeclaredInAnotherOrder(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"vat.place": {gross}, "vat.name": {gross}})
	d := rig.Start(t, m)
	s := d.Session("vat")
	d.WantError(d.Call(s, "place", 200, 7), "invalid_code")
	d.WantValue(d.CallWith(s, "name", map[string]any{"net": 200, "rate": 7}), 214, "generated")
	d.WantValue(d.Call(s, "name", 200, 7), 214, "persisted")
	d.WantValue(d.Call(s, "name", 200), 238, "persisted")
	if n := m.Count("vat", "name"); n != 1 {
		t.Errorf("%d requests for a call by name", n)
	}
}

// A program whose author never takes an argument of the very call refuses that call, and answers others.
func TestFirstProgramThatNeverTakesItsCall(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"pair.of": {declares(joins("a", "b"), "a", "b?")}})
	d := rig.Start(t, m)
	s := d.Session("pair")
	got := d.Invoke(s, map[string]any{"method": "of", "args": []any{1}, "kwargs": map[string]any{"other": 2}})
	wantRefused(d, t, got, map[string]any{"unknown_keywords": []any{"other"}})
	d.WantValue(d.Call(s, "of", 1, 3), []any{1, 3}, "persisted")
}

// Any keyword of visible characters can be declared. A model API sees a key that it takes in its place.
func TestParametersOfAnyName(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{
		"bill.of": {declares(joins("netto", "waehrung"), "netto", "waehrung?"),
			declares(joins("netto", "währung"), "netto", "wa\u0308hrung?")},
		"bill.to": {declares(joins("Kunden Nr", "Ort"), "Kunden Nr", "Ort?")}})
	d := rig.Start(t, m)
	s := d.Session("bill")
	call := func(method string, kwargs map[string]any) rig.Reply {
		return d.Invoke(s, map[string]any{"method": method, "kwargs": kwargs})
	}
	d.WantValue(call("of", map[string]any{"netto": 100, "währung": "CHF"}), []any{100, "CHF"}, "generated")
	d.WantValue(call("of", map[string]any{"netto": 100, "wa\u0308hrung": "CHF"}), []any{100, "CHF"}, "persisted")
	wantRefused(d, t, call("of", map[string]any{"netto": 100, "waehrung": "CHF"}),
		map[string]any{"unknown_keywords": []any{"waehrung"}})
	d.WantValue(d.Call(s, "of", 100, "CHF"), []any{100, "CHF"}, "persisted")
	d.WantValue(call("to", map[string]any{"Kunden Nr": "7", "Ort": "Köln"}), []any{"7", "Köln"}, "generated")
	wantRefused(d, t, call("to", map[string]any{"Kunden Nr": "7", "Stadt": "Köln"}), nil)
	for method, want := range map[string]string{"of": "netto: währung?: declared", "to": "Kunden Nr: Ort?: declared"} {
		if got := signature(d.Artifact("bill", method)); got != want {
			t.Errorf("%s: %q", method, got)
		}
	}
	byKey := d.Do(http.StatusOK, http.MethodPost, "/v1/functions/bill__to",
		map[string]any{"arguments": map[string]any{"Kunden_Nr": "7"}, "session_id": s}).Object(t)
	if o := byKey["outcome"].(map[string]any); !rig.Equal([]any{"7"}, o["value"]) {
		t.Errorf("a function: %v", o)
	}
	if n := m.Count("bill", "to"); n != 1 {
		t.Errorf("%d requests for a name with a space", n)
	}
}

// A program that looks for one parameter under several names and then by position takes one argument.
func TestOneParameterInSeveralPlaces(t *testing.T) {
	t.Parallel()
	code := rig.Program(`	var v any
	for _, name := range []string{"celsius", "c"} {
		if x, ok := call.Kwargs[name]; ok {
			v = x
			break
		}
	}
	if v == nil && len(call.Args) > 0 {
		v = call.Args[0]
	}
	n, ok := v.(float64)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "celsius must be a number")
	}
	return n*9/5 + 32, nil`)
	wantGiven(t, declares(code, "celsius"), givenCall{args: []any{100}, want: 212},
		givenCall{kwargs: map[string]any{"c": 0}, want: 32},
		givenCall{args: []any{1, 2}, refuse: map[string]any{"surplus_arguments": 1.0}},
		givenCall{args: []any{1}, want: 33.8},
		givenCall{refuse: map[string]any{"missing_parameters": []any{"celsius"}}},
		givenCall{args: []any{1}, kwargs: map[string]any{"c": 2}, refuse: map[string]any{}})
}

package tools

import (
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// declares is a program with the parameters that its author declares: a name with a question mark is optional.
func declares(code string, names ...string) openaitest.Reply {
	list := []any{}
	for _, name := range names {
		plain, optional := strings.CutSuffix(name, "?")
		list = append(list, map[string]any{"name": plain, "required": !optional})
	}
	return openaitest.Reply{Code: code, Declared: map[string]any{"parameters": list}}
}

// joins answers with its parameters, and counts in the context how often it ran.
func joins(names ...string) string {
	body := "\tout := []any{}\n"
	for i, name := range names {
		body += "\tif v := call.Arg(" + string(rune('0'+i)) + ", \"" + name +
			"\"); v != nil {\n\t\tout = append(out, v)\n\t}\n"
	}
	return rig.Program(body +
		"\truns, _ := call.Context[\"runs\"].(float64)\n\tcall.Context[\"runs\"] = runs + 1\n\treturn out, nil")
}

// wantRefused checks that a call was refused for its arguments, and what the outcome says.
func wantRefused(d *rig.Daemon, t *testing.T, got rig.Reply, metadata map[string]any) {
	t.Helper()
	d.WantError(got, "invalid_input")
	for key, want := range metadata {
		if !rig.Equal(want, got.Outcome.Metadata[key]) {
			t.Errorf("%s is %v, want %v: %+v", key, got.Outcome.Metadata[key], want, got.Outcome)
		}
	}
	if list, _ := got.Outcome.Metadata["parameters"].([]any); list == nil || got.Outcome.Retriable || got.Outcome.Authored {
		t.Errorf("outcome: %+v", got.Outcome)
	}
	if line := d.LogOf(got); line["failure_class"] != "authored" || line["replayable"] == true {
		t.Errorf("log: class %v, replayable %v", line["failure_class"], line["replayable"])
	}
}

// A call that does not fit the declared parameters is refused before the program runs, by whatever way it comes; the
// program's health, and what it would be forged anew for, stay as they are.
func TestArityIsHeld(t *testing.T) {
	t.Parallel()
	asks := func(call string) string {
		return rig.Program("\to := call.Tool(\"pair\")." + call +
			"\n\treturn map[string]any{\"type\": o.ErrorType, \"takes\": o.Metadata[\"parameters\"] != nil}, nil")
	}
	m := rig.NewModel(t, rig.Script{"pair.of": {declares(joins("a", "b", "c"), "a", "b", "c?")},
		"asks.more":  {asks("Call(\"of\", 1, 2, 3, 4)")},
		"asks.fewer": {asks("CallWith(\"of\", []any{1}, map[string]any{\"c\": 2})")}})
	d := rig.Start(t, m)
	s := d.Session("pair")
	d.WantValue(d.Call(s, "of", 1, 2), []any{1.0, 2.0}, "generated")
	call := func(args []any, kwargs map[string]any) rig.Reply {
		return d.Invoke(s, map[string]any{"method": "of", "args": args, "kwargs": kwargs})
	}
	wantRefused(d, t, call([]any{1}, nil), map[string]any{"missing_parameters": []any{"b"}})
	wantRefused(d, t, call(nil, map[string]any{"b": 1, "c": nil}), map[string]any{"missing_parameters": []any{"a"}})
	wantRefused(d, t, call([]any{1, 2, 3, 4}, nil), map[string]any{"surplus_arguments": 1.0})
	wantRefused(d, t, call(nil, nil), map[string]any{"missing_parameters": []any{"a", "b"}})
	wantRefused(d, t, call([]any{1, 2}, map[string]any{"d": 3}), map[string]any{"unknown_keywords": []any{"d"}})
	d.WantValue(call([]any{1}, map[string]any{"b": nil}), []any{1.0}, "persisted") // a null is an argument
	d.WantValue(call(nil, map[string]any{"b": 1, "a": 2, "c": 3}), []any{2.0, 1.0, 3.0}, "persisted")
	if ran := d.Do(http.StatusOK, http.MethodGet, "/v1/sessions/"+s+"/context", nil).Object(t)["runs"]; ran != 3.0 {
		t.Errorf("the program ran %v times", ran)
	}
	byName := d.Do(http.StatusOK, http.MethodPost, "/v1/functions/pair__of",
		map[string]any{"arguments": map[string]any{"a": 1, "b": 2, "e": 3}, "session_id": s}).Object(t)
	if o := byName["outcome"].(map[string]any); o["error_type"] != "invalid_input" {
		t.Errorf("a function: %v", o)
	}
	d.WantValue(call([]any{1, 2}, nil), []any{1.0, 2.0}, "persisted")
	for _, method := range []string{"more", "fewer"} {
		d.WantValue(d.Call(d.Session("asks"), method), map[string]any{"type": "invalid_input", "takes": true},
			"generated")
	}
	try := d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("pair", "of")+"/try",
		map[string]any{"args": []any{1}}).Object(t)["outcome"].(map[string]any)
	if try["error_type"] != "invalid_input" || try["metadata"] == nil {
		t.Errorf("a try: %v", try)
	}
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("pair", "of")+"/examples", map[string]any{"examples": []any{
		map[string]any{"args": []any{1, 2, 3, 4}, "expect": map[string]any{"error_type": "invalid_input"}},
		map[string]any{"args": []any{1, 2}, "expect": map[string]any{"value": []any{1, 2}}}}})
	if run := d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("pair", "of")+"/examples/run",
		map[string]any{}).Object(t); run["passed"] != 2.0 {
		t.Errorf("examples: %v", run)
	}
	a := d.Artifact("pair", "of")
	if a["intrinsic_failure_count"] != 0.0 || a["adaptive_failure_count"] != 0.0 || m.Count("pair", "of") != 1 {
		t.Errorf("%d requests, artifact: %v", m.Count("pair", "of"), a)
	}
}

// Calls that lack an argument ask for no other program, also of one that never answered with a value.
func TestMissingArgumentsForgeNothing(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"pair.of": {declares(rig.Program(
		"\ta, ok := call.Arg(0, \"a\").(float64)\n\tb, fine := call.Arg(1, \"b\").(float64)\n\tif !ok || !fine {\n\t\treturn nil, recurgent.Fail(\"invalid_input\", \"two numbers\")\n\t}\n\treturn a + b, nil"), "a", "b")}})
	d := rig.Start(t, m)
	s := d.Session("pair")
	for range 4 {
		wantRefused(d, t, d.Call(s, "of", 1), map[string]any{"missing_parameters": []any{"b"}})
	}
	d.WantValue(d.Call(s, "of", 1, 2), 3, "persisted")
	if n := len(m.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Two calls in a row with what the program does not take have it widened: by a keyword, and by position.
func TestUnknownArgumentsWiden(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"pair.of": {declares(joins("a"), "a"), declares(joins("a", "b"), "a", "b?")},
		"pair.named": {declares(joins("a"), "a"), declares(joins("a", "b"), "a", "b?")},
		"pair.keeps": {declares(joins("a"), "a")}})
	d := rig.Start(t, m)
	d.Policy(delaysOfHours)
	s := d.Session("pair")
	for method, more := range map[string]map[string]any{"of": {"args": []any{1, 2}},
		"named": {"kwargs": map[string]any{"a": 1, "b": 2}}, "keeps": {"args": []any{1, 2}}} {
		more["method"] = method
		d.WantValue(d.Call(s, method, 1), []any{1.0}, "generated")
		wantRefused(d, t, d.Invoke(s, more), nil)
		if method == "keeps" {
			continue
		}
		d.WantValue(d.Invoke(s, more), []any{1.0, 2.0}, "repaired")
		d.WantValue(d.Invoke(s, more), []any{1.0, 2.0}, "persisted")
		d.WantValue(d.Call(s, method, 1), []any{1.0}, "persisted")
		if n := m.Count("pair", method); n != 2 {
			t.Errorf("%s: %d requests", method, n)
		}
	}
	for range 3 {
		wantRefused(d, t, d.Call(s, "keeps", 1, 2), map[string]any{"surplus_arguments": 1.0})
	}
	d.WantValue(d.Call(s, "keeps", 1), []any{1.0}, "persisted")
	if n := m.Count("pair", "keeps"); n != 2 { // one repair, which did not help
		t.Errorf("%d requests", n)
	}
}

// The first program takes what its own call gives: what is read and not declared is added, what the call lacks and the
// program does without is optional, and what is neither read nor declared goes back to the model.
func TestFirstProgramTakesItsCall(t *testing.T) {
	t.Parallel()
	lenient := rig.Program("\tlimit, ok := call.Arg(1, \"limit\").(float64)\n\tif !ok {\n\t\tlimit = 10\n\t}\n\treturn []any{call.Arg(0, \"text\"), limit}, nil")
	m := rig.NewModel(t, rig.Script{"pair.added": {declares(joins("a", "b"), "b")},
		"pair.relaxed": {declares(lenient, "text", "limit")},
		"pair.more":    {declares(joins("a"), "a"), declares(joins("a", "b"), "a", "b?")},
		"pair.named":   {declares(joins("a"), "a"), declares(joins("a", "other"), "a", "other?")}})
	d := rig.Start(t, m)
	s := d.Session("pair")
	d.WantValue(d.Call(s, "added", 1, 2), []any{1.0, 2.0}, "generated")
	d.WantValue(d.Call(s, "relaxed", "x"), []any{"x", 10.0}, "generated")
	d.WantValue(d.Call(s, "relaxed", "x", 3), []any{"x", 3.0}, "persisted")
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d requests for two programs", n)
	}
	d.WantValue(d.Call(s, "more", 1, 2), []any{1.0, 2.0}, "generated")
	d.WantValue(d.Invoke(s, map[string]any{"method": "named", "args": []any{1}, "kwargs": map[string]any{"other": 2}}),
		[]any{1.0, 2.0}, "generated")
	for i, want := range []string{"the call gives 2 positional arguments, of which 1 is declared",
		"read and declare other"} {
		if !strings.Contains(request(t, m, 3+2*i), want) {
			t.Errorf("the request lacks %q", want)
		}
	}
	for method, want := range map[string]string{"added": "a?: b?: declared", "relaxed": "text: limit?: declared",
		"more": "a: b?: declared", "named": "a: other?: declared"} {
		if got := signature(d.Artifact("pair", method)); got != want {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
}

// A call with an argument that a method without parameters does not need asks the model about it once, and neither kind
// of call displaces the program of the other. Where the author declares that there are none such a call is refused.
func TestNeedlessArgumentsAskOnce(t *testing.T) {
	t.Parallel()
	none := func(n string) string { return rig.Program("\treturn " + n + "+7, nil") }
	m := rig.NewModel(t, rig.Script{"dice.sides": {none("0"), none("1-1"), none("2-2"), none("3-3")},
		"dice.declared": {declares(none("0"))}, "dice.late": {none("0"), none("1-1"), none("2-2"), none("3-3")},
		"dice.reads": {none("0"),
			rig.Program("\tif n, ok := call.Arg(0, \"n\").(float64); ok {\n\t\treturn n, nil\n\t}\n\treturn 7, nil")}})
	d := rig.Start(t, m)
	s := d.Session("dice")
	for range 4 {
		d.WantValue(d.Call(s, "sides"), 7, "")
		d.WantValue(d.Call(s, "sides", 3), 7, "")
	}
	d.WantValue(d.CallWith(s, "sides", map[string]any{"of": 3}), 7, "") // another shape
	if got := d.CallWith(s, "sides",
		map[string]any{"of": 4}); !rig.Equal([]any{"of"}, got.Outcome.Metadata["unknown_keywords"]) {
		t.Errorf("nothing says that the keyword was not read: %+v", got.Outcome)
	}
	if n := m.Count("dice", "sides"); n != 3 {
		t.Errorf("%d requests for 10 calls of three shapes", n)
	}
	for range 4 {
		d.WantValue(d.Call(s, "late", 3), 7, "")
		d.WantValue(d.Call(s, "late"), 7, "")
	}
	if n := m.Count("dice", "late"); n != 3 {
		t.Errorf("%d requests for 8 calls of two shapes, the needless argument first", n)
	}
	d.WantValue(d.Call(s, "declared"), 7, "generated")
	wantRefused(d, t, d.Call(s, "declared", 3), map[string]any{"surplus_arguments": 1.0, "parameters": []any{}})
	d.WantValue(d.Call(s, "declared"), 7, "persisted")
	if n := m.Count("dice", "declared"); n != 1 {
		t.Errorf("%d requests for a method that takes none", n)
	}
	d.WantValue(d.Call(s, "reads"), 7, "generated")
	d.WantValue(d.Call(s, "reads", 3), 3, "repaired")
	d.WantValue(d.Call(s, "reads", 4), 4, "persisted")
	d.WantValue(d.Call(s, "reads"), 7, "persisted")
}

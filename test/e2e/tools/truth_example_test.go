package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Examples may be put before the method exists: its first program must satisfy them before it answers. At most three
// are shown; the others appear one at a time, when a program breaks them.
func TestExamplesBeforeTheMethod(t *testing.T) {
	t.Parallel()
	step := func(known int) string {
		return rig.Program(fmt.Sprintf(
			"\tn, _ := call.Arg(0, \"n\").(float64)\n\tif n > %d {\n\t\treturn -1, nil\n\t}\n\treturn n * n, nil",
			known))
	}
	m := rig.NewModel(t, rig.Script{"square.of": {step(3), step(4), step(99)}})
	d := rig.Start(t, m)
	d.Policy(object{"outcome_repair_budget": 3})
	var all []object
	for n := 1; n <= 5; n++ {
		all = append(all, example(n*n, n))
	}
	if kept := examples(d, "square", "of", all...); len(kept) != 5 {
		t.Errorf("kept: %v", kept)
	}
	d.WantValue(d.Call(d.Session("square"), "of", 2), 4, "generated")
	q := m.Questions()
	if len(q) != 3 {
		t.Fatalf("%d requests, want 3", len(q))
	}
	if strings.Count(q[0].User, "] must give {") != 3 || strings.Contains(q[0].User, "args [4]") ||
		strings.Contains(q[0].User, "args [5]") {
		t.Errorf("the first request shows:\n%s", q[0].User)
	}
	if !strings.Contains(q[1].User, "for args [4] kwargs {} the answer must be 16, it is -1") ||
		strings.Contains(q[1].User, "args [5]") {
		t.Errorf("the second request says:\n%s", q[1].User)
	}
	if !strings.Contains(q[2].User, "for args [5] kwargs {} the answer must be 25, it is -1") {
		t.Errorf("the third request says:\n%s", q[2].User)
	}
}

// A method whose every program breaks an example answers with an error, and no program of it is kept.
func TestExamplesThatNoProgramHolds(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"tax.net": {progTax60}}))
	d.Policy(delaysOfHours)
	d = d.One() // another replica would try once, too
	examples(d, "tax", "net", example(700, 1000))
	got := d.Call(d.Session("tax"), "net", 10)
	if got.Outcome.OK {
		t.Errorf("got %+v", got.Outcome)
	}
	if a := d.Artifact("tax", "net"); len(a["history"].([]any)) != 0 {
		t.Errorf("kept: %v", a["history"])
	}
	again := d.Call(d.Session("tax"), "net", 10)
	if again.Outcome.OK || again.Outcome.Metadata["retry_after_ms"] == nil || again.Usage.ModelRequests != 0 {
		t.Errorf("the next call: %+v, %+v", again.Outcome, again.Usage)
	}
}

// Bounds and forms of examples: 64 of a method and 256 KiB, one a question, exactly one expectation.
func TestBoundsOfExamples(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"r.m": {rig.ProgEcho}})
	d := rig.Start(t, m)
	path := rig.MethodPath("r", "m") + "/examples"
	refuse := func(code string, all ...object) {
		t.Helper()
		got := d.Send(http.MethodPut, path, rig.Encode(t, object{"examples": all}), nil)
		rig.CheckProblem(t, code, got)
		want := http.StatusUnprocessableEntity
		if code == "too_large" {
			want = http.StatusRequestEntityTooLarge
		}
		if o := got.Object(t); got.Status != want || o["code"] != code {
			t.Errorf("status %d, %s, want %d %s", got.Status, got.Body, want, code)
		}
	}
	var many []object
	for i := range 65 {
		many = append(many, example(i, i))
	}
	refuse("too_large", many...)
	long := strings.Repeat("x", 90<<10)
	refuse("too_large", example(long, 1), example(long, 2), example(long, 3))
	refuse("example_conflict", example(1, "a"), example(2, "a"))
	refuse("invalid_example", object{"args": list(1), "expect": object{"value": 1, "error_type": "x"}})
	// programs see no difference
	refuse("example_conflict", example(1, 1), object{"args": []any{json.RawMessage("1.0")},
		"expect": object{"value": 2}})
	refuse("example_conflict", object{"id": "x", "args": list(1), "expect": object{"value": 1}},
		object{"id": "x", "args": list(2), "expect": object{"value": 1}})
	refuse("invalid_example", object{"id": "a/b", "args": list(1), "expect": object{"value": 1}})
	refuse("invalid_example", object{"id": "a\u202eb", "args": list(1), "expect": object{"value": 1}})
	refuse("invalid_example", object{"args": list(1), "expect": object{}})
	// no program has such an error
	refuse("invalid_example", object{"args": list(1), "expect": object{"error_type": "Not Found"}})
	// no program could hold it
	refuse("invalid_example", object{"args": list(1), "expect": object{"schema": object{"type": 7}}})
	refuse("invalid_example", object{"args": list(1), "expect": object{"schema": object{"$ref": "file:///etc/passwd"}}})
	setter := d.Send(http.MethodPut, rig.MethodPath("r", "name=")+"/examples",
		rig.Encode(t, object{"examples": list(example(1, 1))}), nil)
	if setter.Status != http.StatusUnprocessableEntity || setter.Object(t)["code"] != "no_program" {
		t.Errorf("examples of a setter: status %d, %s", setter.Status, setter.Body)
	}
	withContext := example(2, "a")
	withContext["context"] = object{"unit": "m"}
	if kept := examples(d, "r", "m", append(many[:62:62], example(1, "a"), withContext)...); len(kept) != 64 {
		t.Errorf("%d examples are kept", len(kept))
	}
	// A verdict obeys the same bound.
	d.Policy(object{"correction": "manual"})
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("r", "m"), object{"code": rig.ProgEcho})
	call := d.Call(d.Session("r"), "m", "one more")
	refused(d, call.CallID, object{"verdict": "right"}, http.StatusRequestEntityTooLarge, "too_large")
	refused(d, call.CallID, object{"verdict": "wrong", "expected_error_type": "Not Found"},
		http.StatusUnprocessableEntity, "invalid_verdict")
	verdict(d, call, object{"verdict": "wrong"}) // without an example there is room
	verdict(d, d.Call(call.SessionID, "m", 3), object{"verdict": "wrong", "expected": 9})
	kept := d.Get(path)["examples"].([]any)
	found := 0
	for _, x := range kept {
		if o := x.(object); rig.Equal(list(3), o["args"]) {
			found++
			if !rig.Equal(object{"value": 9}, o["expect"]) {
				t.Errorf("the later example did not replace the earlier: %v", o)
			}
		}
	}
	if len(kept) != 64 || found != 1 {
		t.Errorf("%d examples, %d for the input", len(kept), found)
	}
}

// Numbers compare within 1e-9 relative unless a tolerance says otherwise; error types and schemas can be expected too.
// A run keeps and counts nothing, of the current program, of another generation, and of code.
func TestRunningExamples(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax70, progTax60}})
	d := rig.Start(t, m)
	d.Call(d.Session("tax"), "net", 1)
	operate(d, "tax", "net", "regenerate", object{"reason": "less"})
	d.Call(d.Session("tax"), "net", 1)
	loose := example(650, 1000)
	loose["tolerance"] = 50.5
	kept := examples(d, "tax", "net", example(600.0000000001, 1000.0),
		object{"args": list(2000), "expect": object{"schema": object{"type": "number", "minimum": 1}}},
		example(0.6000001, 1), object{"args": list(3), "expect": object{"error_type": "invalid_input"}})
	before := string(rig.MustJSON(d.Artifact("tax", "net")))
	run := func(body object) (string, object) {
		o := d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("tax", "net")+"/examples/run", body).Object(t)
		text := ""
		for _, r := range o["results"].([]any) {
			text += r.(object)["result"].(string)[:1]
		}
		return text, o
	}
	if text, o := run(object{}); text != "ppff" || o["passed"] != 2.0 || o["failed"] != 2.0 || o["skipped"] != 0.0 {
		t.Errorf("the current program: %s, %v", text, o)
	} else if r := o["results"].([]any)[0].(object); r["id"] != kept[0].(object)["id"] || !rig.Equal(600, r["got"]) ||
		r["error_type"] != "" {
		t.Errorf("a result: %v", r)
	}
	if text, _ := run(object{"generation": "gen-1"}); text != "fpff" {
		t.Errorf("gen-1: %s", text)
	}
	if text, _ := run(object{"code": rig.Program(
		"\treturn nil, recurgent.Fail(\"invalid_input\", \"no\")")}); text != "fffp" {
		t.Errorf("code: %s", text)
	}
	if after := string(rig.MustJSON(d.Artifact("tax", "net"))); after != before {
		t.Errorf("a run changed the artifact:\n%s\n%s", before, after)
	}
	exact := example(600.0000000001, 1000.0)
	exact["tolerance"] = 0
	if kept := examples(d, "tax", "net", exact); kept[0].(object)["tolerance"] != 0.0 {
		t.Errorf("an exact example is kept as %v", kept[0])
	}
	if text, _ := run(object{"generation": "gen-2"}); text != "f" {
		t.Errorf("a tolerance of 0 allows a difference: %s", text)
	}
	examples(d, "tax", "net", loose)
	if text, _ := run(object{}); text != "p" {
		t.Errorf("within the tolerance: %s", text)
	}
	if text, _ := run(object{"generation": "gen-1"}); text != "p" {
		t.Errorf("within the tolerance: %s", text)
	}
}

// An example without effects runs live: an outage or a nested method without a program makes it skipped, neither held
// nor broken; a program that asks for something else than was recorded, too.
func TestSkippedExamples(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	reads := weather(api.URL, "\tt, _ := m[\"temp_c\"].(float64)\n\treturn t, nil")
	other := weather(api.URL+"/v2", "\tt, _ := m[\"temp_c\"].(float64)\n\treturn t + 1, nil")
	m := rig.NewModel(t, rig.Script{"weather.now": {reads}, "office.sum": {rig.ProgDelegates},
		"calculator.add": {rig.ProgAdd}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	s := d.Session("weather")
	recorded := d.Call(s, "now", "Oslo")
	verdict(d, recorded, object{"verdict": "right"})
	kept := d.Get(rig.MethodPath("weather", "now") + "/examples")["examples"].([]any)
	live := example(8, "Bergen")
	examples(d, "weather", "now", kept[0].(object), live)
	run := func(role, method string, body object) string {
		text := ""
		for _, r := range d.Do(http.StatusOK, http.MethodPost, rig.MethodPath(role, method)+"/examples/run",
			body).Object(t)["results"].([]any) {
			text += r.(object)["result"].(string)[:1]
		}
		return text
	}
	if got := run("weather", "now", object{}); got != "pp" {
		t.Errorf("all is well: %s", got)
	}
	api.Status(http.StatusServiceUnavailable)
	// the effects of the first come back as it was put back under its id
	if got := run("weather", "now", object{}); got != "ps" {
		t.Errorf("in an outage: %s, want the recorded one passed and the live one skipped", got)
	}
	api.Body(bodyBefore)
	if got := run("weather", "now", object{"code": other}); got != "sf" {
		t.Errorf("another request: %s, want skipped where it was recorded, failed live", got)
	}
	examples(d, "office", "sum", object{"args": list(), "expect": object{"value": 5}})
	if got := run("office", "sum", object{"code": rig.ProgDelegates}); got != "s" {
		t.Errorf("a nested method without a program: %s", got)
	}
	if asked(m, "calculator", "add") != 0 {
		t.Error("a run of examples had a program forged")
	}
	d.Call(d.Session("calculator"), "add", 1, 1)
	if got := run("office", "sum", object{"code": rig.ProgDelegates}); got != "p" {
		t.Errorf("a nested method that serves: %s", got)
	}
}

// An example of a call that read its session's context replays with that context.
func TestExamplesReplayTheContext(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"greeter.hello": {rig.Program(
		"\tname, _ := call.Context[\"name\"].(string)\n\treturn \"hello \" + name, nil")}})
	d := rig.Start(t, m)
	s := d.Session("greeter")
	d.Call(s, "name=", "Ada")
	verdict(d, d.Call(s, "hello"), object{"verdict": "right"})
	d.Call(s, "name=", "Grace")
	if o := d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("greeter", "hello")+"/examples/run",
		object{}).Object(t); o["passed"] != 1.0 {
		t.Errorf("got %v", o)
	}
}

// Try runs a program on an input beside what serves: its outcome, the examples, and the earlier answers that change.
// Nothing is kept or counted; nested calls never forge.
func TestTry(t *testing.T) {
	t.Parallel()
	api := rig.NewSource(t, bodyBefore)
	m := rig.NewModel(t, rig.Script{"tax.net": {progTax60}})
	d := rig.Start(t, m, "--fetch-allow", api.Host())
	first := d.Call(d.Session("tax"), "net", 1000)
	examples(d, "tax", "net", example(700, 1000), example(0, 0))
	before, calls := string(rig.MustJSON(d.Artifact("tax", "net"))), len(d.List("/v1/calls"))
	try := func(body object) object {
		return d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("tax", "net")+"/try", body).Object(t)
	}
	got := try(object{"code": progTax70, "args": list(100), "kwargs": object{}, "fetch": "denied"})
	changed, _ := got["fixtures"].(object)["changed"].([]any)
	if !rig.Equal(70, got["outcome"].(object)["value"]) || !rig.Equal(object{"passed": 2, "failed": 0, "skipped": 0},
		got["examples"]) || len(changed) != 1 ||
		changed[0].(object)["call_id"] != first.CallID || !rig.Equal(600, changed[0].(object)["was"]) ||
		!rig.Equal(700, changed[0].(object)["now"]) {
		t.Errorf("try of code: %v", got)
	}
	got = try(object{"generation": "gen-1", "args": list(100), "kwargs": object{}, "fetch": "live"})
	if !rig.Equal(60, got["outcome"].(object)["value"]) || got["fixtures"].(object)["same"] != 1.0 ||
		!rig.Equal(object{"passed": 1, "failed": 1, "skipped": 0}, got["examples"]) {
		t.Errorf("try of what serves: %v", got)
	}
	fetches := weather(api.URL, "\treturn m[\"temp_c\"], nil")
	if got := try(object{"code": fetches, "args": list("Oslo"), "kwargs": object{},
		"fetch": "denied"}); got["outcome"].(object)["status"] != "error" {
		t.Errorf("a denied fetch: %v", got["outcome"])
	}
	if got := try(object{"code": fetches, "args": list("Oslo"), "kwargs": object{},
		"fetch": "live"}); !rig.Equal(8, got["outcome"].(object)["value"]) {
		t.Errorf("a live fetch: %v", got["outcome"])
	}
	examples(d, "weather", "far", example(8, "Oslo"), example(9, "Bergen"))
	for mode, want := range map[string]object{"denied": {"passed": 0, "failed": 0, "skipped": 2},
		"live": {"passed": 1, "failed": 1, "skipped": 0}} {
		requests := api.Requests()
		got := d.Do(http.StatusOK, http.MethodPost, rig.MethodPath("weather", "far")+"/try",
			object{"code": fetches, "args": list("Oslo"), "kwargs": object{}, "fetch": mode}).Object(t)
		if !rig.Equal(want, got["examples"]) || (mode == "denied") != (api.Requests() == requests) {
			t.Errorf("examples with fetch %s: %v after %d requests", mode, got, api.Requests()-requests)
		}
	}
	if got := try(object{"code": rig.ProgDelegates, "args": list(), "kwargs": object{},
		"fetch": "live"}); got["outcome"].(object)["error_type"] != "denied" {
		t.Errorf("a nested call that would have to be forged: %v", got["outcome"])
	}
	if after := string(rig.MustJSON(d.Artifact("tax",
		"net"))); after != before || len(d.List("/v1/calls")) != calls || len(m.Questions()) != 1 {
		t.Errorf("a try left something behind:\n%s\n%s", before, after)
	}
}

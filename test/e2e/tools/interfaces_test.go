package tools

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

const (
	readsF = `	v, ok := call.Arg(0, "f").(float64)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "f must be a number")
	}
	return (v - 32) * 5 / 9, nil`
	readsBoth = `	v, ok := call.Arg(0, "f").(float64)
	if !ok {
		v, ok = call.Kwargs["fahrenheit"].(float64)
	}
	if !ok {
		return nil, recurgent.Fail("invalid_input", "f must be a number")
	}
	return (v - 32) * 5 / 9, nil`
	slug = `	if len(call.Args) < 1 {
		return nil, recurgent.Fail("invalid_input", "a title is needed")
	}
	title, ok := call.Args[0].(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "the title must be text")
	}
	sep, ok := call.Kwargs["sep"].(string)
	if !ok {
		sep = "-"
	}
	return strings.Join(strings.Fields(title), sep), nil`
)

// signature is the part of an artifact's interface that callers need.
func signature(a map[string]any) string {
	f, _ := a["interface"].(map[string]any)
	list, _ := f["parameters"].([]any)
	out := ""
	for _, item := range list {
		p, _ := item.(map[string]any)
		kind, _ := p["type"].(string)
		required := "?"
		if p["required"] == true {
			required = ""
		}
		out += p["name"].(string) + required + ":" + kind + " "
	}
	origin, _ := f["origin"].(string)
	return out + origin
}

// request is the text of the i-th request to the model.
func request(t *testing.T, m *rig.Model, i int) string {
	t.Helper()
	all := m.Requests()
	if i >= len(all) {
		t.Fatalf("%d requests, wanted more than %d", len(all), i)
	}
	return all[i].Text
}

// `units.to_celsius --kwargs fahrenheit=100` where the program says f. The first such call fails and says what the
// method takes; the second has the program widened, and both names work from then on.
func TestAnotherNameForAParameter(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.to_celsius": {rig.Program(readsF), rig.Program(readsBoth)}})
	d := rig.Start(t, m)
	s := d.Session("units")
	d.WantValue(d.Call(s, "to_celsius", 100), 37.77777777777778, "generated")
	first := d.CallWith(s, "to_celsius", map[string]any{"fahrenheit": 100})
	d.WantError(first, "invalid_input")
	if got := first.Outcome.Metadata; !rig.Equal([]any{"fahrenheit"}, got["unknown_keywords"]) ||
		!rig.Equal([]any{map[string]any{"name": "f", "type": "number", "required": true}}, got["parameters"]) {
		t.Errorf("metadata: %v", got)
	}
	d.WantValue(d.CallWith(s, "to_celsius", map[string]any{"fahrenheit": 212}), 100, "repaired")
	q := m.LastQuestion()
	for _, want := range []string{"fahrenheit", "f must be a number", "to_celsius(f: number)"} {
		if !strings.Contains(q.User, want) {
			t.Errorf("the repair's request lacks %q:\n%s", want, q.User)
		}
	}
	if n := strings.Count(q.User, "keywords that the program does not read: fahrenheit"); n != 2 {
		t.Errorf("the repair sees %d of 2 failures:\n%s", n, q.User)
	}
	d.WantValue(d.CallWith(s, "to_celsius", map[string]any{"fahrenheit": 32}), 0, "persisted")
	d.WantValue(d.CallWith(s, "to_celsius", map[string]any{"f": 32}), 0, "persisted")
	a := d.Artifact("units", "to_celsius")
	if got := signature(a); got != "f:number inferred" && got != "f?:number inferred" {
		t.Errorf("interface %q", got)
	}
	if len(m.Requests()) != 2 {
		t.Errorf("%d requests", len(m.Requests()))
	}
}

// One failure, a success between two, and a program that cannot be widened ask the model for nothing more than once.
func TestWideningIsBounded(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"units.to_celsius": {rig.Program(readsF), rig.Program(readsF),
		rig.Program(readsBoth)}})
	d := rig.Start(t, m)
	d.Policy(delaysOfHours)
	s := d.Session("units")
	d.WantValue(d.Call(s, "to_celsius", 32), 0, "generated")
	unknown := func() rig.Reply { return d.CallWith(s, "to_celsius", map[string]any{"fahrenheit": 32}) }
	d.WantError(unknown(), "invalid_input")
	d.WantValue(d.Call(s, "to_celsius", 212), 100, "persisted")
	d.WantError(unknown(), "invalid_input")
	if n := len(m.Requests()); n != 1 {
		t.Errorf("%d requests before two failures in a row", n)
	}
	d.WantError(unknown(), "invalid_input") // the repair does not help
	d.WantError(unknown(), "invalid_input") // and is not tried again at once
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
	d.WantValue(d.Call(s, "to_celsius", 212), 100, "persisted")
}

// A caller's keyword and positional forms are interchangeable: each argument reaches the program where it looks, both
// are the same input, and the call can be replayed.
func TestFormsAreInterchangeable(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"text.slug": {rig.Program(slug, "strings")}})
	d := rig.Start(t, m)
	s := d.Session("text")
	d.WantValue(d.Call(s, "slug", "a b"), "a-b", "generated")
	byName := d.CallWith(s, "slug", map[string]any{"title": "a b"})
	d.WantValue(byName, "a-b", "persisted")
	d.WantValue(d.CallWith(s, "slug", map[string]any{"title": "a b", "sep": "_"}), "a_b", "persisted")
	d.WantValue(d.Call(s, "slug", "a b", "_"), "a_b", "persisted")
	d.WantValue(d.Invoke(s, map[string]any{"method": "slug", "args": []any{"a b"},
		"kwargs": map[string]any{"sep": "."}}), "a.b", "persisted")
	if got := signature(d.Artifact("text", "slug")); got != "title:string sep?:string inferred" {
		t.Errorf("interface %q", got)
	}
	generation := d.Artifact("text", "slug")["history"].([]any)[0].(map[string]any)
	if n := generation["fixture_count"]; n != 3.0 { // a b; a b _; a b .
		t.Errorf("%v fixtures", n)
	}
	report := d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+byName.CallID+"/replay", map[string]any{}).Object(t)
	if report["equal"] != true {
		t.Errorf("replay: %v", report)
	}
	d.Do(http.StatusUnprocessableEntity, http.MethodPut, rig.MethodPath("text", "slug")+"/examples",
		map[string]any{"examples": []any{
			map[string]any{"args": []any{"x y"}, "expect": map[string]any{"value": "x-y"}},
			map[string]any{"kwargs": map[string]any{"title": "x y"}, "expect": map[string]any{"value": "xy"}}}})
	odd := d.CallWith(s, "slug", map[string]any{"title": "a b", "separator": "_"})
	d.WantValue(odd, "a-b", "persisted")
	if got := odd.Outcome.Metadata["unknown_keywords"]; !rig.Equal([]any{"separator"}, got) {
		t.Errorf("metadata: %v", odd.Outcome.Metadata)
	}
}

// The model declares what its program takes; what does not fit the program goes back to it, and what the program does
// not read is left out.
func TestDeclaredInterface(t *testing.T) {
	t.Parallel()
	declared := func(parameters ...any) openaitest.Reply {
		return openaitest.Reply{Code: rig.Program(slug, "strings"),
			Declared: map[string]any{"summary": "joins the words of a title", "parameters": parameters,
				"returns": map[string]any{"type": "string"}}}
	}
	title := map[string]any{"name": "text", "type": "string", "description": "the title", "required": true}
	sep := map[string]any{"name": "sep", "type": "string", "required": false, "default": "-"}
	m := rig.NewModel(t, rig.Script{"text.slug": {declared(map[string]any{"name": "text", "type": "words"}, sep),
		declared(title, map[string]any{"name": "max", "type": "integer", "required": true}, sep)}})
	d := rig.Start(t, m)
	s := d.Session("text")
	generated := d.Call(s, "slug", "a b")
	d.WantValue(generated, "a-b", "generated")
	if want := "text has the type"; !strings.Contains(request(t, m, 1), want) {
		t.Errorf("the second request lacks %q", want)
	}
	if n := len(m.Requests()); n != 2 {
		t.Errorf("%d requests, though a parameter that nobody reads is no fault", n)
	}
	if why := string(d.Do(http.StatusOK, http.MethodGet, "/v1/calls/"+generated.CallID+"/why",
		nil).Body); !strings.Contains(why, "parameter max left out: the program does not read it") {
		t.Errorf("nothing says that max was left out: %s", why)
	}
	a := d.Artifact("text", "slug")
	if got := signature(a); got != "text:string sep?:string declared" {
		t.Errorf("interface %q", got)
	}
	if f := a["interface"].(map[string]any); f["summary"] != "joins the words of a title" ||
		!rig.Equal(map[string]any{"type": "string"}, f["returns"]) {
		t.Errorf("interface %v", f)
	}
	d.WantValue(d.CallWith(s, "slug", map[string]any{"text": "a b"}), "a-b", "persisted")
}

// A right program is not given up for a description that never fits: what was inferred holds.
func TestDeclarationThatNeverFits(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"text.slug": {openaitest.Reply{Code: rig.Program(slug, "strings"),
		Declared: map[string]any{"parameters": []any{map[string]any{"name": "title", "type": "words",
			"required": true}}}}}})
	d := rig.Start(t, m)
	d.WantValue(d.Call(d.Session("text"), "slug", "a b"), "a-b", "generated")
	if got := signature(d.Artifact("text", "slug")); got != "title:string sep?:string inferred" {
		t.Errorf("interface %q", got)
	}
}

// An automatic successor keeps every parameter; a person's program need not.
func TestSuccessorStaysCompatible(t *testing.T) {
	t.Parallel()
	narrow := "\tif call.Arg(0, \"title\") == \"bad\" {\n\t\treturn \"fixed\", nil\n\t}\n\ttext, _ := call.Arg(0, \"title\").(string)\n\treturn text, nil"
	first := "\tif call.Arg(0, \"title\") == \"bad\" {\n\t\tpanic(\"boom\")\n\t}\n\ttext, _ := call.Arg(0, \"title\").(string)\n\tif call.Kwargs[\"loud\"] == true {\n\t\ttext += \"!\"\n\t}\n\treturn text, nil"
	whole := strings.Replace(first, "panic(\"boom\")", "return \"fixed\", nil", 1)
	m := rig.NewModel(t, rig.Script{"text.say": {rig.Program(first), rig.Program(narrow), rig.Program(whole)}})
	d := rig.Start(t, m)
	s := d.Session("text")
	d.WantValue(d.Call(s, "say", "a"), "a", "generated")
	d.WantValue(d.Call(s, "say", "bad"), "fixed", "repaired")
	if !strings.Contains(request(t, m, 2), "the parameter loud is gone") {
		t.Error("the model was not asked to keep the parameter")
	}
	d.WantValue(d.CallWith(s, "say", map[string]any{"title": "a", "loud": true}), "a!", "persisted")
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("text", "say"),
		map[string]any{"code": rig.Program(narrow),
			"parameters": []any{map[string]any{"name": "title", "type": "string", "required": false}}})
	if got := signature(d.Artifact("text", "say")); got != "title?:string declared" {
		t.Errorf("interface %q", got)
	}
	d.Do(http.StatusOK, http.MethodPut, rig.MethodPath("text", "say"),
		map[string]any{"code": rig.Program(narrow),
			"parameters": []any{map[string]any{"name": "volume", "type": "string", "required": false}}})
	if got := signature(d.Artifact("text", "say")); got != "title?: declared" { // what is read, and nothing else
		t.Errorf("interface %q", got)
	}
	d.Do(http.StatusUnprocessableEntity, http.MethodPut, rig.MethodPath("text", "say"),
		map[string]any{"code": rig.Program(first), "parameters": []any{map[string]any{"name": "loud"},
			map[string]any{"name": "title", "type": "words"}}})
}

// A program that an earlier version stored has no interface: the next call that it answers infers it, and asks no
// model.
func TestStoredProgramsGetAnInterface(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"text.slug": {rig.Program(slug, "strings")}})
	d := rig.Start(t, m)
	s := d.Session("text")
	d.WantValue(d.Call(s, "slug", "a b"), "a-b", "generated")
	stripped := 0
	d.Edit(func(dir string) {
		for path, data := range rig.Files(t, dir) {
			var a map[string]any
			if !strings.HasSuffix(path, ".json") || json.Unmarshal(data, &a) != nil || a["method_name"] != "slug" {
				continue
			}
			for _, g := range a["history"].([]any) {
				delete(g.(map[string]any), "interface")
				stripped++
			}
			rig.WriteAt(t, path, string(rig.MustJSON(a)))
		}
	})
	if stripped != 1 {
		t.Fatalf("%d generations were stripped", stripped)
	}
	if a := d.Artifact("text", "slug"); a["interface"] != nil {
		t.Fatalf("the interface is still there: %v", a["interface"])
	}
	d.WantValue(d.Call(s, "slug", "a c"), "a-c", "persisted")
	if got := signature(d.Artifact("text", "slug")); got != "title:string sep?:string inferred" {
		t.Errorf("interface %q", got)
	}
	d.WantValue(d.CallWith(s, "slug", map[string]any{"title": "a d"}), "a-d", "persisted")
	if n := len(m.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A program sees the signatures of methods that can matter for its task, and a person those of all.
func TestSignaturesAreShown(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"text.slug": {rig.Program(slug, "strings")}, "slug printer.print": {rig.ProgGiven}})
	d := rig.Start(t, m)
	s := d.Session("text")
	d.Call(s, "slug", "a b")
	d.Call(d.Session("slug printer"), "print", "a b")
	if q := m.LastQuestion(); !strings.Contains(q.User, "slug(title: string, sep?: string") {
		t.Errorf("no signature in:\n%s", q.User)
	}
	d.Call(s, "shout", "a")
	if q := m.LastQuestion(); !strings.Contains(q.User, `"signature":"slug(title: string, sep?: string`) {
		t.Errorf("no signature in the history preview:\n%s", q.User)
	}
	out, _, code := d.Client("tools", "show", "text", "slug")
	if code != 0 || !strings.Contains(out, "takes: slug(title: string, sep?: string") ||
		!strings.Contains(out, "(inferred)") {
		t.Errorf("tools show ended with %d:\n%s", code, out)
	}
}

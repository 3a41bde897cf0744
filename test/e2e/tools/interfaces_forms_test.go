package tools

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A name has one meaning in every form of Unicode: a keyword in another form than the program's text has is that
// parameter, for calls, examples and nested calls, and so is a declared parameter.
func TestKeywordsInOtherForms(t *testing.T) {
	t.Parallel()
	const apart, composed, kelvin = "gro\u0308\u00dfe", "gr\u00f6\u00dfe", "\u212a"
	reads := func(name string) string { return rig.Program("\treturn call.Kwargs[\"" + name + "\"], nil") }
	nested := rig.Program("\tout := call.Tool(\"forms\").CallWith(\"apart\", nil, map[string]any{\"" + apart +
		"\": 7})\n\treturn out.Value, nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"forms.apart": {reads(apart)}, "forms.composed": {reads(composed)},
		"forms.nested": {nested}}))
	s := d.Session("forms")
	for _, method := range []string{"apart", "composed"} {
		for i, name := range []string{apart, composed} {
			d.WantValue(d.CallWith(s, method, map[string]any{name: i}), i, "")
		}
		examples(d, "forms", method, object{"args": []any{}, "kwargs": object{composed: 3},
			"expect": object{"value": 3}}, object{"args": []any{}, "kwargs": object{apart: 4},
			"expect": object{"value": 4}})
	}
	d.WantValue(d.Call(s, "nested"), 7, "")
	d.Do(200, "PUT", rig.MethodPath("forms", "declared"),
		map[string]any{"code": rig.Program("\treturn call.Arg(0, \"K\"), nil"),
			"parameters": []any{object{"name": kelvin, "type": "number", "required": true}}})
	if got := signature(d.Artifact("forms", "declared")); !strings.HasPrefix(got, "K:number ") {
		t.Errorf("it takes %s", got)
	}
	d.WantValue(d.CallWith(s, "declared", map[string]any{kelvin: 2}), 2, "")
}

// Positional arguments that a list takes stay positional, whatever the program reads by name too.
func TestListsKeepTheirArguments(t *testing.T) {
	t.Parallel()
	mean := rig.Program("\tsum := 0.0\n\tfor _, v := range call.Args {\n\t\tn, _ := v.(float64)\n\t\tsum += n\n\t}\n" +
		"\tif d, ok := call.Kwargs[\"digits\"].(float64); ok {\n\t\treturn []any{sum, d}, nil\n\t}\n\treturn sum, nil")
	whatever := rig.Program("\tout := []any{}\n\tfor _, v := range call.Args {\n\t\tout = append(out, v)\n\t}\n" +
		"\tfor _, v := range call.Kwargs {\n\t\tout = append(out, v)\n\t}\n\t_, a := call.Kwargs[\"a\"]\n" +
		"\treturn append(out, a), nil")
	d := rig.Start(t, rig.NewModel(t, rig.Script{"stats.sum": {mean}, "stats.any": {whatever}}))
	s := d.Session("stats")
	for range 2 { // at the forging call and later
		d.WantValue(d.Call(s, "sum", 2, 4), 6, "")
		d.WantValue(d.Call(s, "any", 1, 2), []any{1, 2, false}, "")
	}
	d.WantValue(d.CallWith(s, "sum", map[string]any{"args": []int{2, 4}}), 6, "")
	d.WantValue(d.CallWith(s, "sum", map[string]any{"args": []int{2, 4}, "digits": 3}), []any{6, 3}, "")
	d.WantValue(d.CallWith(s, "any", map[string]any{"a": 1}), []any{1, true}, "")
}

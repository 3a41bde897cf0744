package daemon

import (
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The demo's programs declare what they take. A call that does not fit is refused before the program runs, whether a
// program is there or its first call brings it, and however often it comes. It changes neither the program nor MCP's
// list of tools.
func TestDemoRefusesWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, nil)
	s := d.Session("calculator")
	refused := func(method string, body object, metadata, want string) {
		t.Helper()
		body["method"] = method
		got := d.Invoke(s, body)
		d.WantError(got, "invalid_input")
		if got.Outcome.Authored || string(rig.Encode(t, got.Outcome.Metadata[metadata])) != want {
			t.Errorf("%v: %+v, want %s %s", body, got.Outcome, metadata, want)
		}
		if list, _ := got.Outcome.Metadata["parameters"].([]any); len(list) != 2 {
			t.Errorf("%v: the parameters are %v", body, got.Outcome.Metadata["parameters"])
		}
	}
	one, three := []any{1}, []any{1, 2, 3}
	refused("subtract", object{"args": one}, "missing_parameters", `["b"]`)
	refused("multiply", object{"args": three}, "surplus_arguments", `1`)
	d.WantValue(d.Call(s, "multiply", 4, 2), 8, "persisted")
	d.WantValue(d.Call(s, "add", 2, 3), 5, "generated")

	agent := overHTTP(t, d, newest)
	listed := func() string {
		list, err := agent.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(rig.Encode(t, list.Tools))
	}
	before := listed()
	for range 3 {
		refused("add", object{"args": one}, "missing_parameters", `["b"]`)
		refused("add", object{"args": three}, "surplus_arguments", `1`)
		refused("add", object{"args": []any{1, 2}, "kwargs": object{"c": 3}}, "unknown_keywords", `["c"]`)
	}
	agent.failure(agent.call("calculator__add", object{"a": 1}, nil), "invalid_input")
	if after := listed(); after != before {
		t.Errorf("MCP's list of tools was\n%s\nand is\n%s", before, after)
	}
	names := []any{}
	for _, p := range d.Artifact("calculator", "add")["interface"].(object)["parameters"].([]any) {
		names = append(names, p.(object)["name"])
	}
	if !slices.Equal(names, []any{"a", "b"}) {
		t.Errorf("add takes %v", names)
	}
	d.WantValue(d.Call(s, "add", 40, 2), 42, "persisted")
}

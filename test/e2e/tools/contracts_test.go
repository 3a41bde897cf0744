package tools

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/contract"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// newStrictDaemon starts one in which a violation ends its call: nothing is fixed.
func newStrictDaemon(t *testing.T, m *rig.Model) *rig.Daemon {
	d := rig.Start(t, m)
	d.Policy(map[string]any{"outcome_repair_budget": 0})
	return d
}

// Clients see each constraint accept and refuse the right values, and the metric counts each violation under its
// mismatch.
func TestConstraints(t *testing.T) {
	t.Parallel()
	const movies = `{"type":"object","required":["status","movies"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`
	const weak = `{"status":"success_no_parse","movies":[]}`
	tests := []struct {
		name, deliverable, value string
		want                     string // metadata of the violation; "" for an ok value, which comes back as it is
	}{
		{"words without constraints", `{"type":"object","required":["status","movies"]}`, weak, ""},
		{"no contract", ``, weak, ""},
		{"the same with min_items", movies, weak,
			`{"mismatch":"min_items_violation","expected_shape":"array","actual_shape":"array","expected_keys":["movies"],"actual_keys":[],"expected_min_items":1,"actual_items":0,"constraint_path":"deliverable.constraints.properties.movies.min_items","value_path":"/movies"}`},
		{"one movie", movies, `{"status":"ok","movies":["A"]}`, ""},
		{"movies of another type", movies, `{"status":"ok","movies":"A"}`,
			`{"mismatch":"property_type_mismatch","expected_shape":"array","actual_shape":"string","expected_keys":["movies"],"actual_keys":[],"constraint_path":"deliverable.constraints.properties.movies.type","value_path":"/movies"}`},
		{"a missing key", movies, `{"status":"ok"}`,
			`{"mismatch":"missing_required_key","expected_shape":"object","actual_shape":"object","expected_keys":["status","movies"],"actual_keys":["status"],"missing_keys":["movies"],"constraint_path":"deliverable.required","value_path":""}`},
		{"an array for an object", movies, `["A"]`,
			`{"mismatch":"type_mismatch","expected_shape":"object","actual_shape":"array","expected_keys":["status","movies"],"actual_keys":[],"constraint_path":"deliverable.type","value_path":""}`},
		{"top level, 0 of 0", `{"type":"array","min_items":0}`, `[]`, ""},
		{"top level, 1 of 2", `{"type":"array","min_items":2}`, `[1]`,
			`{"mismatch":"min_items_violation","expected_shape":"array","actual_shape":"array","expected_keys":[],"actual_keys":[],"expected_min_items":2,"actual_items":1,"constraint_path":"deliverable.min_items","value_path":""}`},
		{"top level, 2 of 2", `{"type":"array","min_items":2}`, `[1,2]`, ""},
		{"in constraints, 0 of 1", `{"type":"array","constraints":{"min_items":1}}`, `[]`,
			`{"mismatch":"min_items_violation","expected_shape":"array","actual_shape":"array","expected_keys":[],"actual_keys":[],"expected_min_items":1,"actual_items":0,"constraint_path":"deliverable.constraints.min_items","value_path":""}`},
		{"JSON Schema", `{"type":"object","properties":{"n":{"type":"integer","minimum":0}}}`, `{"n":-1}`,
			`{"mismatch":"schema_violation","expected_shape":"integer","actual_shape":"number","expected_keys":[],"actual_keys":[],"expected":"minimum 0","actual":"-1","constraint_path":"deliverable.properties.n.minimum","value_path":"/n"}`},
		{"a reference within the document", `{"$defs":{"t":{"type":"string"}},"items":{"$ref":"#/$defs/t"}}`, `["a",1]`,
			`{"mismatch":"property_type_mismatch","expected_shape":"string","actual_shape":"number","expected_keys":["1"],"actual_keys":[],"constraint_path":"deliverable.$defs.t.type","value_path":"/1"}`},
		{"other types", `{"type":["string","null"]}`, `null`, ""},
	}
	m := rig.NewModel(t, nil)
	m.Otherwise(rig.ProgGiven)
	d := newStrictDaemon(t, m)
	s := d.Session("shapes")
	mismatches := map[string]float64{}
	for i, tt := range tests {
		// The acceptance is false of every value.
		k := map[string]any{"purpose": "p", "acceptance": []any{map[string]any{"assert": "the moon is made of cheese"}}}
		if tt.deliverable != "" {
			k["deliverable"] = rig.ParseJSON(tt.deliverable)
		}
		got := d.Invoke(s, map[string]any{"method": fmt.Sprint("m", i), "args": []any{rig.ParseJSON(tt.value)},
			"contract": k})
		if tt.want == "" {
			d.WantValue(got, rig.ParseJSON(tt.value), "generated")
			continue
		}
		d.WantError(got, "contract_violation")
		if !rig.Equal(rig.ParseJSON(tt.want), got.Outcome.Metadata) || got.Outcome.Retriable || got.Outcome.Authored ||
			got.Outcome.ErrorMessage == "" {
			t.Errorf("%s: got %+v", tt.name, got.Outcome)
		}
		e := d.LogOf(got)
		if e["contract_validation_applied"] != true || e["contract_validation_passed"] != false ||
			e["contract_validation_mismatch"] != got.Outcome.Metadata["mismatch"] || e["contract_source"] != "hash" {
			t.Errorf("%s: log %v %v %v %v", tt.name, e["contract_validation_applied"], e["contract_validation_passed"],
				e["contract_validation_mismatch"], e["contract_source"])
		}
		mismatches[got.Outcome.Metadata["mismatch"].(string)]++
	}
	for mismatch, n := range mismatches {
		if got := d.Metric(`recurgent_contract_violations_total{mismatch="` + mismatch + `"}`); got != n {
			t.Errorf("%s: the metric counts %v, want %v", mismatch, got, n)
		}
	}
	// nil_required_input: an empty answer to null.
	nothing := d.Invoke(s, map[string]any{"method": "nothing", "args": []any{nil},
		"contract": map[string]any{"deliverable": rig.ParseJSON(`{"type":"object"}`)}})
	d.WantError(nothing, "contract_violation") // the echo of null is no object
}

// The same value breaks the same contract with the same bytes, and the repair request has all of them.
func TestViolationsAreTheSameEveryTime(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, nil)
	m.Otherwise(rig.ProgGiven)
	d := newStrictDaemon(t, m)
	k := map[string]any{"deliverable": rig.ParseJSON(
		`{"type":"object","required":["z","a","m"],"properties":{"a":{"type":"string"},"z":{"type":"string"},"m":{"type":"string"}}}`)}
	var first string
	for i := range 3 {
		body := string(d.Do(http.StatusOK, http.MethodPost, "/v1/sessions/"+d.Session("shapes")+"/calls",
			map[string]any{"method": fmt.Sprint("m", i), "args": []any{map[string]any{"m": 1, "b": 2, "a": 3}},
				"contract": k}).Body)
		outcome := strings.ReplaceAll(body[strings.Index(body, `"outcome":`):strings.Index(body, `"program":`)],
			fmt.Sprint("m", i), "method")
		if first == "" {
			first = outcome
		}
		if outcome != first || !strings.Contains(outcome, `"missing_keys":["z"]`) {
			t.Errorf("got  %s\nwant %s", outcome, first)
		}
	}
	d.Policy(map[string]any{"outcome_repair_budget": 1})
	d.Invoke(d.Session("shapes"), map[string]any{"method": "repaired", "args": []any{map[string]any{"m": 1}},
		"contract": k})
	q := m.LastQuestion()
	for _, part := range []string{"missing_required_key", "expected_keys", "actual_keys", "constraint_path",
		"deliverable.required"} {
		if q.Kind != "repair" || !strings.Contains(q.User, part) {
			t.Errorf("the %s request does not have %s", q.Kind, part)
		}
	}
}

// Senseless constraints are refused at every door with a pointer to them; a program may delegate with one, which is
// reported and binds nobody while the rest of the contract holds; its $ref is refused.
func TestSenselessContracts(t *testing.T) {
	t.Parallel()
	delegating := func(deliverable string) string {
		return rig.Program("\tk := recurgent.Contract{Purpose: \"p\", Deliverable: " + deliverable +
			"}\n\tout := call.Delegate(\"child\", k).Call(call.Arg(1, \"m\").(string), call.Arg(0, \"v\"))\n" +
			"\tif !out.OK() {\n\t\treturn map[string]any{\"failed\": out.ErrorType, \"mismatch\": out.Metadata[\"mismatch\"]}, nil\n\t}\n\treturn out.Value, nil")
	}
	m := rig.NewModel(t, rig.Script{
		"odd.run": {delegating(`map[string]any{"type": "array", "min_items": -1}`)},
		"pointing.go": {delegating(
			`map[string]any{"$ref": "#/$defs/a", "$defs": map[string]any{"a": map[string]any{"type": "array"}}}`)},
	})
	m.Otherwise(rig.ProgGiven)
	d := newStrictDaemon(t, m)
	s := d.Session("shapes")
	for _, tt := range []struct{ deliverable, pointer string }{
		{`{"type":"array","min_items":-1}`, "/min_items"},
		{`{"type":"array","min_items":"many"}`, "/min_items"},
		{`{"type":"object","constraints":{"properties":{"m":{"type":"array","min_items":1.5}}}}`,
			"/constraints/properties/m/min_items"},
		{`{"type":"hash"}`, "/type"},
		{`{"required":["a","a"]}`, "/required"},
		{`{"properties":{"a/b":{"pattern":"("}}}`, "/properties/a~1b/pattern"},
		{`{"properties":{"a":{"$ref":"https://example.com/schema"}}}`, "/properties/a/$ref"},
		{`{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`, "/properties/a/$ref"},
		{`{"minimum":1e-999999}`, "/minimum"},
		{`{"allOf":[` + strings.Repeat(`{},`, 10_000) + `{}]}`, "/allOf/9999"},
	} {
		for _, door := range []struct{ method, path, body, at string }{
			{http.MethodPut, "/v1/tools/bad", `{"purpose":"p","deliverable":` + tt.deliverable + `}`, "/deliverable"},
			{http.MethodPut, "/v1/tools/bad", `{"purpose":"p","methods":{"m":{"deliverable":` + tt.deliverable + `}}}`,
				"/methods/m/deliverable"},
			{http.MethodPost, "/v1/sessions", `{"role":"bad","contract":{"deliverable":` + tt.deliverable + `}}`,
				"/contract/deliverable"},
			{http.MethodPost, "/v1/sessions/" + s + "/calls", `{"method":"m","args":[1],"contract":{"deliverable":` +
				tt.deliverable + `}}`, "/contract/deliverable"},
		} {
			r := d.Send(door.method, door.path, []byte(door.body), nil)
			if r.Status != http.StatusUnprocessableEntity || !strings.Contains(string(r.Body),
				`"pointer":"`+door.at+tt.pointer+`"`) {
				t.Errorf("%s %s %.80s: status %d, %s", door.method, door.path, door.body, r.Status, r.Body)
			}
		}
	}
	if n := len(d.History(s)); n != 0 {
		t.Errorf("%d records of refused calls", n)
	}

	s = d.Session("odd")
	got := d.Call(s, "run", []any{}, "empty")
	d.WantValue(got, []any{}, "generated") // min_items: -1 binds nobody
	if w := fmt.Sprint(d.LogOf(got)["warnings"]); !strings.Contains(w, "child") || !strings.Contains(w, "/min_items") {
		t.Errorf("the senseless constraint is not reported: %s", w)
	}
	d.WantValue(d.Call(s, "run", "no list", "text"), map[string]any{"failed": "contract_violation",
		"mismatch": "type_mismatch"}, "persisted")
	// its $ref is refused
	d.WantValue(d.Call(d.Session("pointing"), "go", []any{}, "m"),
		map[string]any{"failed": "invalid_input", "mismatch": nil}, "generated")
}

// Every request explains contracts; the example in it is valid, and rejects wrong values.
func TestRequestsDescribeContracts(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"t.m": {rig.ProgAdd}})
	d := rig.Start(t, m)
	d.Call(d.Session("t"), "m", 1, 2)
	q := m.LastQuestion()
	for _, part := range []string{"If utility must fail inline, encode it as deliverable constraints", "low_utility",
		"wrong_tool_boundary", "Acceptance is prose"} {
		if !strings.Contains(q.System+q.User, part) {
			t.Errorf("the request does not say %q", part)
		}
	}
	example := ""
	for line := range strings.Lines(q.System) {
		if strings.HasPrefix(line, "{") && strings.Contains(line, "min_items") {
			example = line
		}
	}
	s, err := contract.Compile(json.RawMessage(example))
	if err != nil {
		t.Fatalf("the example %q: %v", example, err)
	}
	if v := s.Check(json.RawMessage(
		`{"status":"ok","movies":[]}`)); v == nil || v.Mismatch != contract.MismatchMinItems {
		t.Errorf("the example %q does not bite: %+v", example, v)
	}
}

// Contracts per role and, over that, per method; call over session over registry, by top-level key; the log
// says where the result came from.
func TestContractLayers(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, nil)
	m.Otherwise(rig.ProgGiven)
	d := newStrictDaemon(t, m)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/lists",
		rig.ParseJSON(`{"purpose":"lists","deliverable":{"type":"array"},"methods":{"count":{"deliverable":{"type":"number"}}}}`))
	plain, own := d.Session("lists"), d.Session("lists",
		map[string]any{"contract": rig.ParseJSON(`{"deliverable":{"type":"string"}}`)})
	other := d.Session("other", map[string]any{"contract": rig.ParseJSON(`{"deliverable":{"type":"string"}}`)})
	for i, tt := range []struct {
		session, role, method string
		value                 any
		contract              any
		source                string
		fits                  bool
	}{
		{plain, "", "all", []any{1}, nil, "fields", true},
		{plain, "", "every", 1, nil, "fields", false},
		{plain, "", "count", 1, nil, "fields", true},
		{plain, "", "count", []any{1}, nil, "fields", false},
		{own, "", "named", "a", nil, "merged", true},
		{own, "", "unnamed", []any{1}, nil, "merged", false},
		{own, "", "called", map[string]any{}, rig.ParseJSON(`{"deliverable":{"type":"object"}}`), "merged", true},
		{plain, "", "worded", []any{1}, rig.ParseJSON(`{"purpose":"other words"}`), "merged", true},
		{plain, "", "whole", map[string]any{}, rig.ParseJSON(`{"purpose":"p","deliverable":{"type":"object"}}`), "hash",
			true},
		{other, "", "own", "a", nil, "hash", true},
		{other, "lists", "foreign", []any{1}, nil, "fields", true}, // a session's contract is its own role's
		{other, "nobody", "m", 1, nil, "none", true},
	} {
		body := map[string]any{"method": tt.method, "args": []any{tt.value}}
		if tt.role != "" {
			body["role"] = tt.role
		}
		if tt.contract != nil {
			body["contract"] = tt.contract
		}
		got := d.Invoke(tt.session, body)
		if got.Outcome.OK != tt.fits {
			t.Errorf("%d: %s of %v: %+v", i, tt.method, tt.value, got.Outcome)
		}
		e := d.LogOf(got)
		print, _ := e["contract_fingerprint"].(string)
		if e["contract_source"] != tt.source || (print == "none") != (tt.source == "none") {
			t.Errorf("%d: %s: contract_source %v, fingerprint %s, want %s", i, tt.method, e["contract_source"], print,
				tt.source)
		}
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/contract"
)

// progGiven answers with its argument, so that a test says what a program returns.
var progGiven = program("\treturn call.Arg(0, \"v\"), nil")

// newStrictDaemon starts one in which a violation ends its call: nothing is mended.
func newStrictDaemon(t *testing.T, m *model) *proc {
	d := newDaemon(t, m)
	d.policy(map[string]any{"outcome_repair_budget": 0})
	return d
}

func raw(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic("a test's own JSON: " + err.Error())
	}
	return v
}

// metric reads one sample of /metrics; a series that is not there is 0.
func (d *proc) metric(series string) float64 {
	d.t.Helper()
	for line := range strings.Lines(string(d.do(http.StatusOK, http.MethodGet, "/metrics", nil).Body)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			v, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				d.t.Fatalf("%s: %v", line, err)
			}
			return v
		}
	}
	return 0
}

// C-01, C-02, C-05 to C-10, C-13, C-18: what each constraint lets through and what it refuses, as a client sees it; and
// that the metric counts each violation under its mismatch.
func TestConstraints(t *testing.T) {
	const movies = `{"type":"object","required":["status","movies"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`
	const weak = `{"status":"success_no_parse","movies":[]}`
	tests := []struct {
		name, deliverable, value string
		want                     string // metadata of the violation; "" for an ok value, which comes back as it is
	}{
		{"words without constraints", `{"type":"object","required":["status","movies"]}`, weak, ""}, // C-01, C-09
		{"no contract", ``, weak, ""},
		{"the same with min_items", movies, weak, // C-02, C-08
			`{"mismatch":"min_items_violation","expected_shape":"array","actual_shape":"array","expected_keys":["movies"],"actual_keys":[],"expected_min_items":1,"actual_items":0,"constraint_path":"deliverable.constraints.properties.movies.min_items","value_path":"/movies"}`},
		{"one movie", movies, `{"status":"ok","movies":["A"]}`, ""},
		{"movies of another type", movies, `{"status":"ok","movies":"A"}`,
			`{"mismatch":"property_type_mismatch","expected_shape":"array","actual_shape":"string","expected_keys":["movies"],"actual_keys":[],"constraint_path":"deliverable.constraints.properties.movies.type","value_path":"/movies"}`},
		{"a missing key", movies, `{"status":"ok"}`, // C-06, C-13
			`{"mismatch":"missing_required_key","expected_shape":"object","actual_shape":"object","expected_keys":["status","movies"],"actual_keys":["status"],"missing_keys":["movies"],"constraint_path":"deliverable.required","value_path":""}`},
		{"an array for an object", movies, `["A"]`, // C-05
			`{"mismatch":"type_mismatch","expected_shape":"object","actual_shape":"array","expected_keys":["status","movies"],"actual_keys":[],"constraint_path":"deliverable.type","value_path":""}`},
		{"top level, 0 of 0", `{"type":"array","min_items":0}`, `[]`, ""}, // C-07
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
	m := newModel(t, nil)
	m.otherwise(progGiven)
	d := newStrictDaemon(t, m)
	s := d.session("shapes")
	mismatches := map[string]float64{}
	for i, tt := range tests {
		// C-18: the acceptance is false of every value.
		k := map[string]any{"purpose": "p", "acceptance": []any{map[string]any{"assert": "the moon is made of cheese"}}}
		if tt.deliverable != "" {
			k["deliverable"] = raw(tt.deliverable)
		}
		got := d.invoke(s, map[string]any{"method": fmt.Sprint("m", i), "args": []any{raw(tt.value)}, "contract": k})
		if tt.want == "" {
			d.wantValue(got, raw(tt.value), "generated")
			continue
		}
		d.wantError(got, "contract_violation")
		if !equal(raw(tt.want), got.Outcome.Metadata) || got.Outcome.Retriable || got.Outcome.Authored || got.Outcome.ErrorMessage == "" {
			t.Errorf("%s: got %+v", tt.name, got.Outcome)
		}
		e := d.logOf(got)
		if e["contract_validation_applied"] != true || e["contract_validation_passed"] != false || e["contract_validation_mismatch"] != got.Outcome.Metadata["mismatch"] || e["contract_source"] != "hash" {
			t.Errorf("%s: log %v %v %v %v", tt.name, e["contract_validation_applied"], e["contract_validation_passed"], e["contract_validation_mismatch"], e["contract_source"])
		}
		mismatches[got.Outcome.Metadata["mismatch"].(string)]++
	}
	for mismatch, n := range mismatches {
		if got := d.metric(`recurgent_contract_violations_total{mismatch="` + mismatch + `"}`); got != n {
			t.Errorf("%s: the metric counts %v, want %v", mismatch, got, n)
		}
	}
	// nil_required_input: an empty answer to null.
	nothing := d.invoke(s, map[string]any{"method": "nothing", "args": []any{nil}, "contract": map[string]any{"deliverable": raw(`{"type":"object"}`)}})
	d.wantError(nothing, "contract_violation") // the echo of null is no object
}

// C-11: the same value breaks the same contract in the same bytes, and the repair is told all of it.
func TestViolationsAreTheSameEveryTime(t *testing.T) {
	m := newModel(t, nil)
	m.otherwise(progGiven)
	d := newStrictDaemon(t, m)
	k := map[string]any{"deliverable": raw(`{"type":"object","required":["z","a","m"],"properties":{"a":{"type":"string"},"z":{"type":"string"},"m":{"type":"string"}}}`)}
	var first string
	for i := range 3 {
		body := string(d.do(http.StatusOK, http.MethodPost, "/v1/sessions/"+d.session("shapes")+"/calls",
			map[string]any{"method": fmt.Sprint("m", i), "args": []any{map[string]any{"m": 1, "b": 2, "a": 3}}, "contract": k}).Body)
		outcome := strings.ReplaceAll(body[strings.Index(body, `"outcome":`):strings.Index(body, `"program":`)], fmt.Sprint("m", i), "method")
		if first == "" {
			first = outcome
		}
		if outcome != first || !strings.Contains(outcome, `"missing_keys":["z"]`) {
			t.Errorf("got  %s\nwant %s", outcome, first)
		}
	}
	d.policy(map[string]any{"outcome_repair_budget": 1})
	d.invoke(d.session("shapes"), map[string]any{"method": "repaired", "args": []any{map[string]any{"m": 1}}, "contract": k})
	q := m.last()
	for _, part := range []string{"missing_required_key", "expected_keys", "actual_keys", "constraint_path", "deliverable.required"} {
		if q.Kind != "repair" || !strings.Contains(q.User, part) {
			t.Errorf("the %s request does not tell %s", q.Kind, part)
		}
	}
}

// C-14: senseless constraints are refused at every door with a pointer to them; a program may delegate with one, which is
// reported and binds nobody while the rest of the contract holds; its $ref is refused.
func TestSenselessContracts(t *testing.T) {
	delegating := func(deliverable string) string {
		return program("\tk := recurgent.Contract{Purpose: \"p\", Deliverable: " + deliverable + "}\n\tout := call.Delegate(\"child\", k).Call(call.Arg(1, \"m\").(string), call.Arg(0, \"v\"))\n" +
			"\tif !out.OK() {\n\t\treturn map[string]any{\"failed\": out.ErrorType, \"mismatch\": out.Metadata[\"mismatch\"]}, nil\n\t}\n\treturn out.Value, nil")
	}
	m := newModel(t, script{
		"odd.run":     {delegating(`map[string]any{"type": "array", "min_items": -1}`)},
		"pointing.go": {delegating(`map[string]any{"$ref": "#/$defs/a", "$defs": map[string]any{"a": map[string]any{"type": "array"}}}`)},
	})
	m.otherwise(progGiven)
	d := newStrictDaemon(t, m)
	s := d.session("shapes")
	for _, tt := range []struct{ deliverable, pointer string }{
		{`{"type":"array","min_items":-1}`, "/min_items"},
		{`{"type":"array","min_items":"many"}`, "/min_items"},
		{`{"type":"object","constraints":{"properties":{"m":{"type":"array","min_items":1.5}}}}`, "/constraints/properties/m/min_items"},
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
			{http.MethodPut, "/v1/tools/bad", `{"purpose":"p","methods":{"m":{"deliverable":` + tt.deliverable + `}}}`, "/methods/m/deliverable"},
			{http.MethodPost, "/v1/sessions", `{"role":"bad","contract":{"deliverable":` + tt.deliverable + `}}`, "/contract/deliverable"},
			{http.MethodPost, "/v1/sessions/" + s + "/calls", `{"method":"m","args":[1],"contract":{"deliverable":` + tt.deliverable + `}}`, "/contract/deliverable"},
		} {
			r := d.send(door.method, door.path, []byte(door.body), nil)
			if r.Status != http.StatusUnprocessableEntity || !strings.Contains(string(r.Body), `"pointer":"`+door.at+tt.pointer+`"`) {
				t.Errorf("%s %s %.80s: status %d, %s", door.method, door.path, door.body, r.Status, r.Body)
			}
		}
	}
	if n := len(d.history(s)); n != 0 {
		t.Errorf("%d records of refused calls", n)
	}

	s = d.session("odd")
	got := d.call(s, "run", []any{}, "empty")
	d.wantValue(got, []any{}, "generated") // min_items: -1 binds nobody
	if w := fmt.Sprint(d.logOf(got)["warnings"]); !strings.Contains(w, "child") || !strings.Contains(w, "/min_items") {
		t.Errorf("the senseless constraint is not reported: %s", w)
	}
	d.wantValue(d.call(s, "run", "no list", "text"), map[string]any{"failed": "contract_violation", "mismatch": "type_mismatch"}, "persisted")
	d.wantValue(d.call(d.session("pointing"), "go", []any{}, "m"), map[string]any{"failed": "invalid_input", "mismatch": nil}, "generated") // its $ref is refused
}

// C-15 to C-17: what every request says of contracts; the example in it is one that the validator takes, and it bites.
func TestRequestsTellOfContracts(t *testing.T) {
	m := newModel(t, script{"t.m": {progAdd}})
	d := newDaemon(t, m)
	d.call(d.session("t"), "m", 1, 2)
	q := m.last()
	for _, part := range []string{"If utility must fail inline, encode it as deliverable constraints", "low_utility", "wrong_tool_boundary", "Acceptance is prose"} {
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
	if v := s.Check(json.RawMessage(`{"status":"ok","movies":[]}`)); v == nil || v.Mismatch != contract.MismatchMinItems {
		t.Errorf("the example %q does not bite: %+v", example, v)
	}
}

// randomValue makes values that could tempt a runtime: words of success and failure, empty lists, nested as may be.
func randomValue(r *rand.Rand, depth int) any {
	words := []string{"success_no_parse", "no_results", "error", "empty", "failed", "ok", "success", "fallback", "null", "exception", "timeout", "", "contract_violation", "low_utility"}
	switch n := r.IntN(10); {
	case n < 3 || depth > 3:
		return words[r.IntN(len(words))]
	case n < 4:
		return []any{nil, true, false, r.IntN(5), r.Float64()}[r.IntN(5)]
	case n < 6:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, randomValue(r, depth+1))
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(5) {
		object[[]string{"status", "movies", "error", "ok", "error_type", "outcome", "items", "message"}[r.IntN(8)]] = randomValue(r, depth+1)
	}
	return object
}

// reworded replaces every word of a value.
func reworded(v any) any {
	switch v := v.(type) {
	case string:
		return "word"
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = reworded(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = reworded(e)
		}
		return out
	}
	return v
}

// C-01, C-04, C-21, by random values of a fixed seed: an outcome has the same bytes with every detector on and off, also
// when it was asked for again; it is the value that the program returned; and no other choice of words ends otherwise.
func TestOutcomesDoNotDependOnWords(t *testing.T) {
	m := newModel(t, script{"t.ask": {progGiven}, "t.m": {progGiven}})
	d := newDaemon(t, m)
	// Everything that a detector looks at is watched, and nothing is demanded.
	k := map[string]any{"deliverable": raw(`{"properties":{"movies":{"type":["array","object","string","number","boolean","null"]},"items":{"type":["array","object","string","number","boolean","null"]}}}`)}
	outcome := func(session, method string, v any) (text string, got reply) {
		body := d.do(http.StatusOK, http.MethodPost, "/v1/sessions/"+session+"/calls", map[string]any{"method": method, "args": []any{v}, "contract": k}).Body
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		return string(body[strings.Index(string(body), `"outcome":`):strings.Index(string(body), `"program":`)]), got
	}
	const n = 50
	all := func() (texts []string) {
		r := rand.New(rand.NewPCG(7, 11))
		s := d.session("t")
		for i := range n {
			method := []string{"m", "ask"}[i%2]
			v := randomValue(r, 0)
			if o, ok := v.(map[string]any); ok && i%3 == 0 {
				o["movies"] = []any{}
			}
			text, got := outcome(s, method, v)
			if !got.Outcome.OK || !equal(v, got.Outcome.Value) {
				t.Errorf("%v came back as %+v", v, got.Outcome)
			}
			if again, _ := outcome(s, method, v); again != text {
				t.Errorf("asked again: %s, before %s", again, text)
			}
			if _, other := outcome(s, method, reworded(v)); other.Outcome.OK != got.Outcome.OK {
				t.Errorf("%v in other words: %+v", v, other.Outcome)
			}
			texts = append(texts, text)
		}
		return texts
	}
	on := all()
	if d.metric(`recurgent_weak_successes_total{reason="empty_array"}`) == 0 || d.metric(`recurgent_user_corrections_total{signal="temporal_reask"}`) == 0 {
		t.Error("the detectors saw nothing: the test shows nothing")
	}
	d.policy(map[string]any{"weak_success": map[string]any{"statuses": []any{}, "empty_arrays": false}, "user_correction": map[string]any{"window_seconds": 0}})
	for i, off := range all() {
		if off != on[i] {
			t.Errorf("with the detectors off: %s, on: %s", off, on[i])
		}
	}
}

// C-35, C-04: keys are the same whatever Go type they come from; a refused program is written again; a program that breaks
// the contract on its first run is mended.
func TestContractsLeaveTheRestAlone(t *testing.T) {
	k := map[string]any{"contract": map[string]any{"deliverable": raw(`{"type":"object","required":["status","movies"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`)}}
	structure := "package tool\n\nimport \"recurgent\"\n\ntype answer struct {\n\tStatus string `json:\"status\"`\n\tMovies []string `json:\"movies\"`\n\thidden int\n}\n\nfunc Run(call *recurgent.Call) (any, error) {\n\treturn %sanswer{Status: \"ok\", Movies: []string{\"A\"}}, nil\n}\n"
	m := newModel(t, script{
		"keys.struct":  {fmt.Sprintf(structure, "")},
		"keys.pointer": {fmt.Sprintf(structure, "&")},
		"keys.typed":   {program("\ttype key string\n\treturn map[key]any{key(\"status\"): \"ok\", \"movies\": []string{\"A\"}}, nil")},
		"keys.plain":   {program("\treturn map[string]any{\"status\": \"ok\", \"movies\": [1]string{\"A\"}, \"more\": nil}, nil")},
		"keys.guarded": {program("\treturn map[string]any{\"status\": exec.ErrNotFound.Error()}, nil", "os/exec"), progMoviesFull},
		"keys.mended":  {progMoviesWeak, progMoviesFull},
	})
	d := newDaemon(t, m)
	s := d.session("keys", k)
	for _, method := range []string{"struct", "pointer", "typed", "plain"} {
		got := d.call(s, method)
		value, _ := got.Outcome.Value.(map[string]any)
		if !got.Outcome.OK || value["status"] != "ok" || !equal([]any{"A"}, value["movies"]) || m.count("keys", method) != 1 {
			t.Errorf("%s: %+v after %d requests", method, got.Outcome, m.count("keys", method))
		}
	}
	guarded := d.call(s, "guarded", "drama")
	d.wantValue(guarded, map[string]any{"status": "success", "movies": []any{"B"}}, "generated")
	if e := d.logOf(guarded); e["guardrail_recovery_attempts"] != 1.0 || e["outcome_repair_attempts"] != 0.0 {
		t.Errorf("guardrail retries: %v, outcome repairs: %v", e["guardrail_recovery_attempts"], e["outcome_repair_attempts"])
	}
	mended := d.call(s, "mended", "action")
	d.wantValue(mended, map[string]any{"status": "success", "movies": []any{"A", "B", "action"}}, "generated")
	if e := d.logOf(mended); e["outcome_repair_attempts"] != 1.0 || e["guardrail_recovery_attempts"] != 0.0 {
		t.Errorf("outcome repairs: %v, guardrail retries: %v", e["outcome_repair_attempts"], e["guardrail_recovery_attempts"])
	}
	if n := d.metric(`recurgent_contract_violations_total{mismatch="min_items_violation"}`); n != 1 {
		t.Errorf("the mended violation counts %v times, want once", n)
	}
}

// C-36: contracts and detectors add nothing to an artifact's key or file: one that was written without a contract serves
// under a purpose and an acceptance, and a new contract makes it stale, not another one.
func TestArtifactKeysStay(t *testing.T) {
	m := newModel(t, script{"movie finder.find": {progMoviesWeak, progMoviesFull}})
	d := newDaemon(t, m)
	first := d.call(d.session("movie finder"), "find", "action")
	prose := map[string]any{"contract": map[string]any{"purpose": "find movies", "acceptance": []any{map[string]any{"assert": "there are some"}}, "failure_policy": map[string]any{"on_error": "return_error"}}}
	d.wantValue(d.call(d.session("movie finder", prose), "find", "action"), first.Outcome.Value, "persisted")
	d.restart()
	d.wantValue(d.call(d.session("movie finder", prose), "find", "action"), first.Outcome.Value, "persisted")
	strict := map[string]any{"contract": map[string]any{"deliverable": raw(`{"constraints":{"properties":{"movies":{"min_items":1}}}}`)}}
	d.wantValue(d.call(d.session("movie finder", strict), "find", "action"), map[string]any{"status": "success", "movies": []any{"A", "B", "action"}}, "repaired")
	if l := d.list("/v1/tools/movie%20finder/methods"); len(l) != 1 {
		t.Errorf("%d artifacts, want the one: %v", len(l), l)
	}
}

// C-19: the documentation says what is enforced and what is prose.
func TestContractsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, row := range []string{"`deliverable` | yes", "`signature` | yes", "`purpose` | no", "`acceptance` | no", "`failure_policy` | no"} {
		if !strings.Contains(text, row) {
			t.Errorf("docs/contracts.md does not say %q", row)
		}
	}
	for _, mismatch := range []string{"type_mismatch", "missing_required_key", "min_items_violation", "property_type_mismatch", "nil_required_input", "schema_violation"} {
		if !regexp.MustCompile("`" + mismatch + "`").MatchString(text) {
			t.Errorf("docs/contracts.md does not name %s", mismatch)
		}
	}
}

// Issue 7.1: contracts per role and, over that, per method; call over session over registry, by top-level key; the log
// says where the result came from.
func TestContractLayers(t *testing.T) {
	m := newModel(t, nil)
	m.otherwise(progGiven)
	d := newStrictDaemon(t, m)
	d.do(http.StatusCreated, http.MethodPut, "/v1/tools/lists", raw(`{"purpose":"lists","deliverable":{"type":"array"},"methods":{"count":{"deliverable":{"type":"number"}}}}`))
	plain, own := d.session("lists"), d.session("lists", map[string]any{"contract": raw(`{"deliverable":{"type":"string"}}`)})
	other := d.session("other", map[string]any{"contract": raw(`{"deliverable":{"type":"string"}}`)})
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
		{own, "", "called", map[string]any{}, raw(`{"deliverable":{"type":"object"}}`), "merged", true},
		{plain, "", "worded", []any{1}, raw(`{"purpose":"other words"}`), "merged", true},
		{plain, "", "whole", map[string]any{}, raw(`{"purpose":"p","deliverable":{"type":"object"}}`), "hash", true},
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
		got := d.invoke(tt.session, body)
		if got.Outcome.OK != tt.fits {
			t.Errorf("%d: %s of %v: %+v", i, tt.method, tt.value, got.Outcome)
		}
		e := d.logOf(got)
		print, _ := e["contract_fingerprint"].(string)
		if e["contract_source"] != tt.source || (print == "none") != (tt.source == "none") {
			t.Errorf("%d: %s: contract_source %v, fingerprint %s, want %s", i, tt.method, e["contract_source"], print, tt.source)
		}
	}
}

package tools

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// randomValue makes values that could tempt a runtime: words of success and failure, empty lists, nested as may be.
func randomValue(r *rand.Rand, depth int) any {
	words := []string{"success_no_parse", "no_results", "error", "empty", "failed", "ok", "success", "fallback", "null",
		"exception", "timeout", "", "contract_violation", "low_utility"}
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
		object[[]string{"status", "movies", "error", "ok", "error_type", "outcome", "items",
			"message"}[r.IntN(8)]] = randomValue(r, depth+1)
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

// By random values of a fixed seed: an outcome has the same bytes with every detector on and off, also
// when it was asked for again; it is the value that the program returned; and no other choice of words ends otherwise.
func TestOutcomesDoNotDependOnWords(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"t.ask": {rig.ProgGiven}, "t.m": {rig.ProgGiven}})
	d := rig.Start(t, m)
	// Everything that a detector looks at is watched, and nothing is demanded.
	k := map[string]any{"deliverable": rig.ParseJSON(
		`{"properties":{"movies":{"type":["array","object","string","number","boolean","null"]},"items":{"type":["array","object","string","number","boolean","null"]}}}`)}
	outcome := func(session, method string, v any) (text string, got rig.Reply) {
		body := d.Do(http.StatusOK, http.MethodPost, "/v1/sessions/"+session+"/calls",
			map[string]any{"method": method, "args": []any{v}, "contract": k}).Body
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		return string(body[strings.Index(string(body), `"outcome":`):strings.Index(string(body), `"program":`)]), got
	}
	const n = 50
	all := func() (texts []string) {
		r := rand.New(rand.NewPCG(7, 11))
		s := d.Session("t")
		for i := range n {
			method := []string{"m", "ask"}[i%2]
			v := randomValue(r, 0)
			if o, ok := v.(map[string]any); ok && i%3 == 0 {
				o["movies"] = []any{}
			}
			text, got := outcome(s, method, v)
			if !got.Outcome.OK || !rig.Equal(v, got.Outcome.Value) {
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
	if d.Metric(`recurgent_weak_successes_total{reason="empty_array"}`) == 0 ||
		d.Metric(`recurgent_user_corrections_total{signal="temporal_reask"}`) == 0 {
		t.Error("the detectors saw nothing: the test shows nothing")
	}
	d.Policy(map[string]any{"weak_success": map[string]any{"statuses": []any{}, "empty_arrays": false},
		"user_correction": map[string]any{"window_seconds": 0}})
	for i, off := range all() {
		if off != on[i] {
			t.Errorf("with the detectors off: %s, on: %s", off, on[i])
		}
	}
}

// Keys are the same whatever Go type they come from; a refused program is written again; a program that breaks
// the contract on its first run is fixed.
func TestContractsLeaveTheRestAlone(t *testing.T) {
	t.Parallel()
	k := map[string]any{"contract": map[string]any{"deliverable": rig.ParseJSON(
		`{"type":"object","required":["status","movies"],"constraints":{"properties":{"movies":{"type":"array","min_items":1}}}}`)}}
	structure := "package tool\n\nimport \"recurgent\"\n\ntype answer struct {\n\tStatus string `json:\"status\"`\n\tMovies []string `json:\"movies\"`\n\thidden int\n}\n\nfunc Run(call *recurgent.Call) (any, error) {\n\treturn %sanswer{Status: \"ok\", Movies: []string{\"A\"}}, nil\n}\n"
	m := rig.NewModel(t, rig.Script{
		"keys.struct":  {fmt.Sprintf(structure, "")},
		"keys.pointer": {fmt.Sprintf(structure, "&")},
		"keys.typed": {rig.Program(
			"\ttype key string\n\treturn map[key]any{key(\"status\"): \"ok\", \"movies\": []string{\"A\"}}, nil")},
		"keys.plain": {rig.Program(
			"\treturn map[string]any{\"status\": \"ok\", \"movies\": [1]string{\"A\"}, \"more\": nil}, nil")},
		"keys.guarded": {rig.Program("\treturn map[string]any{\"status\": exec.ErrNotFound.Error()}, nil", "os/exec"),
			rig.ProgMoviesFull},
		"keys.fixed": {rig.ProgMoviesWeak, rig.ProgMoviesFull},
	})
	d := rig.Start(t, m)
	s := d.Session("keys", k)
	for _, method := range []string{"struct", "pointer", "typed", "plain"} {
		got := d.Call(s, method)
		value, _ := got.Outcome.Value.(map[string]any)
		if !got.Outcome.OK || value["status"] != "ok" || !rig.Equal([]any{"A"}, value["movies"]) ||
			m.Count("keys", method) != 1 {
			t.Errorf("%s: %+v after %d requests", method, got.Outcome, m.Count("keys", method))
		}
	}
	guarded := d.Call(s, "guarded", "drama")
	d.WantValue(guarded, map[string]any{"status": "success", "movies": []any{"B"}}, "generated")
	if e := d.LogOf(guarded); e["guardrail_recovery_attempts"] != 1.0 || e["outcome_repair_attempts"] != 0.0 {
		t.Errorf("guardrail retries: %v, outcome repairs: %v", e["guardrail_recovery_attempts"],
			e["outcome_repair_attempts"])
	}
	fixed := d.Call(s, "fixed", "action")
	d.WantValue(fixed, map[string]any{"status": "success", "movies": []any{"A", "B", "action"}}, "generated")
	if e := d.LogOf(fixed); e["outcome_repair_attempts"] != 1.0 || e["guardrail_recovery_attempts"] != 0.0 {
		t.Errorf("outcome repairs: %v, guardrail retries: %v", e["outcome_repair_attempts"],
			e["guardrail_recovery_attempts"])
	}
	if n := d.Metric(`recurgent_contract_violations_total{mismatch="min_items_violation"}`); n != 1 {
		t.Errorf("the fixed violation counts %v times, want once", n)
	}
}

// Contracts and detectors add nothing to an artifact's key or file: one that was written without a contract serves
// under a purpose and an acceptance, and a new contract makes it stale, not another one.
func TestArtifactKeysStay(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak, rig.ProgMoviesFull}})
	d := rig.Start(t, m)
	first := d.Call(d.Session("movie finder"), "find", "action")
	prose := map[string]any{"contract": map[string]any{"purpose": "find movies",
		"acceptance":     []any{map[string]any{"assert": "there are some"}},
		"failure_policy": map[string]any{"on_error": "return_error"}}}
	d.WantValue(d.Call(d.Session("movie finder", prose), "find", "action"), first.Outcome.Value, "persisted")
	d.Restart()
	d.WantValue(d.Call(d.Session("movie finder", prose), "find", "action"), first.Outcome.Value, "persisted")
	strict := map[string]any{"contract": map[string]any{"deliverable": rig.ParseJSON(
		`{"constraints":{"properties":{"movies":{"min_items":1}}}}`)}}
	d.WantValue(d.Call(d.Session("movie finder", strict), "find", "action"),
		map[string]any{"status": "success", "movies": []any{"A", "B", "action"}}, "repaired")
	if l := d.List("/v1/tools/movie%20finder/methods"); len(l) != 1 {
		t.Errorf("%d artifacts, want the one: %v", len(l), l)
	}
}

// The documentation says what is enforced and what is prose.
func TestContractsAreDocumented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/contracts.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, row := range []string{"`deliverable` | yes", "`signature` | yes", "`purpose` | no", "`acceptance` | no",
		"`failure_policy` | no"} {
		if !strings.Contains(text, row) {
			t.Errorf("docs/contracts.md does not say %q", row)
		}
	}
	for _, mismatch := range []string{"type_mismatch", "missing_required_key", "min_items_violation",
		"property_type_mismatch", "nil_required_input", "schema_violation"} {
		if !regexp.MustCompile("`" + mismatch + "`").MatchString(text) {
			t.Errorf("docs/contracts.md does not name %s", mismatch)
		}
	}
}

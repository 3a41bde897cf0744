package tools

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// tallies counts what is to be compared of a role's calls: the log entries are in the order of the API.
func tallies(entries []map[string]any) map[string]map[string]int {
	out := map[string]map[string]int{}
	for _, e := range entries {
		role := e["role"].(string)
		if out[role] == nil {
			out[role] = map[string]int{"weak_successes": 0, "user_corrections": 0, "contract_violations": 0,
				"errors": 0, "repairs": 0}
		}
		n := out[role]
		n["calls"]++
		n["from_"+e["program_source"].(string)]++
		usage, _ := e["usage"].(map[string]any)
		requests, _ := usage["model_requests"].(float64)
		n["model_requests"] += int(requests)
		for name, field := range map[string]string{"weak_successes": "weak_success",
			"user_corrections": "user_correction_detected", "repairs": "repair_succeeded"} {
			if e[field] == true {
				n[name]++
			}
		}
		if e["outcome_status"] == "error" {
			n["errors"]++
		}
		failures, _ := e["attempt_failures"].([]any)
		for _, f := range failures {
			if f.(map[string]any)["error_type"] == "contract_violation" {
				n["contract_violations"]++
			}
		}
	}
	return out
}

// The movie scenario, three news sites over mediated fetches, and a control without an open world: the same
// calls before and after a person applied what was recommended, with their counts on file.
func TestContractBaselines(t *testing.T) {
	t.Parallel()
	google, yahoo, nyt := rig.NewSource(t, rig.NewsBody("G1", "G2")), rig.NewSource(t, rig.NewsBody()),
		rig.NewSource(t, rig.NewsBody("N1"))
	m := rig.NewModel(t, rig.Script{"movie finder.find": {rig.ProgMoviesWeak, rig.ProgMoviesFull},
		"calculator.add": {rig.ProgAdd},
		"news.google":    {rig.ProgHeadlines(google.URL)}, "news.yahoo": {rig.ProgHeadlines(yahoo.URL),
			rig.ProgHeadlines(google.URL)}, "news.nyt": {rig.ProgHeadlines(nyt.URL)}})
	// a repair of yahoo asks google
	d := rig.Start(t, m, "--fetch-allow", google.Host()+","+yahoo.Host()+","+nyt.Host(), "--policy", "new_reach=allow")
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/movie%20finder", rig.MovieContract)
	d.Do(http.StatusCreated, http.MethodPut, "/v1/tools/news",
		map[string]any{"purpose": "headlines", "deliverable": map[string]any{"type": "object",
			"required": []any{"status", "headlines"}}})
	seen := map[string]bool{}
	round := func() map[string]any {
		movies, news, sums := d.Session("movie finder"), d.Session("news"), d.Session("calculator")
		for range 4 {
			d.Call(movies, "find", "action")
			d.Call(movies, "find", "drama")
			for _, site := range []string{"google", "yahoo", "nyt"} {
				d.Call(news, site)
			}
			d.Call(sums, "add", 2, 3)
		}
		nyt.Status(http.StatusServiceUnavailable)
		d.Call(news, "nyt")
		nyt.Body(rig.NewsBody("N1"))
		d.Call(news, "nyt")
		var entries []map[string]any
		for _, e := range d.List("/v1/calls") {
			if id := e["call_id"].(string); !seen[id] {
				seen[id] = true
				entries = append(entries, e)
			}
		}
		open := map[string]any{}
		for _, r := range d.Recommendations("") {
			open[r["role"].(string)+"."+r["method"].(string)] = map[string]any{"kind": r["kind"], "score": r["score"],
				"simulation": r["simulation"]}
		}
		return map[string]any{"calls": tallies(entries), "recommendations": open}
	}
	before := round()
	for _, r := range d.Recommendations("") {
		d.Do(http.StatusOK, http.MethodPost, "/v1/recommendations/"+r["id"].(string)+"/apply", nil)
	}
	after := round()
	for _, role := range []string{"movie finder", "news"} {
		was, is := before["calls"].(map[string]map[string]int)[role], after["calls"].(map[string]map[string]int)[role]
		if was["weak_successes"] == 0 || is["weak_successes"] != 0 || is["repairs"] != 1 {
			t.Errorf("%s: before %v, after %v", role, was, is)
		}
	}
	got, err := json.MarshalIndent(map[string]any{"before": before, "after": after}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "../../../docs/baselines/2026-11-21/contracts.json"
	if os.Getenv("RECURGENTD_WRITE_BASELINES") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("(%v)\n%s\nis on file:\n%s", err, got, want)
	}
}

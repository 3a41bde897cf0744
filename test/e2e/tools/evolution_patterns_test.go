package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// recentPatterns are the lines of a request's pattern memory; nil when it has none.
func recentPatterns(q rig.Question) []string {
	_, rest, ok := strings.Cut(q.System+q.User, "<recent_patterns>\n")
	if !ok {
		return nil
	}
	lines, _, _ := strings.Cut(rest, "</recent_patterns>")
	var out []string
	for line := range strings.Lines(lines) {
		if pattern, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			out = append(out, pattern)
		}
	}
	return out
}

// A role's memory comes from the gate's facts; a root call's request shows at most four capabilities, each
// seen at least twice in the last five events, and a nested call's shows none; the ring keeps 50 events over restarts.
func TestPatternMemory(t *testing.T) {
	t.Parallel()
	skilled := func(statements string, imports ...string) string {
		return rig.Program("\ttext := \"1,2\"\n\t_ = text\n"+statements+"\n\treturn call.Arg(0, \"v\"), nil",
			imports...)
	}
	const reads = "\trows, _ := csv.NewReader(strings.NewReader(text)).ReadAll()\n\t_ = rows\n"
	everything := reads + "\tvar x struct{ A string }\n\t_ = xml.Unmarshal([]byte(\"<x/>\"), &x)\n\tu, _ := url.Parse(\"https://example.com\")\n\tsum := sha256.Sum256([]byte(text))\n\t_ = fmt.Sprint(x, html.UnescapeString(text), u, sum)"
	m := rig.NewModel(t, rig.Script{
		"miner.plain": {skilled("")},
		"miner.one":   {skilled(reads, "encoding/csv", "strings")},
		"miner.two": {skilled(everything, "encoding/csv", "encoding/xml", "html", "strings", "net/url",
			"crypto/sha256", "fmt")},
		"miner.three": {skilled(everything, "encoding/csv", "encoding/xml", "html", "strings", "net/url",
			"crypto/sha256", "fmt")},
		"miner.outer": {rig.Program("\to := call.Tool(\"miner\").Call(\"inner\", 1.0)\n\treturn o.Value, nil")},
		"miner.inner": {skilled("")}, "miner.last": {skilled("")}, "other.first": {skilled("")},
	})
	d := rig.Start(t, m)
	s := d.Session("miner")
	d.Call(s, "plain", 1)
	if p := recentPatterns(m.LastQuestion()); p != nil {
		t.Errorf("a first request shows %v", p)
	}
	d.Call(s, "one", 1)
	d.Call(s, "two", 1)
	if p := recentPatterns(m.LastQuestion()); p != nil {
		t.Errorf("what was needed once is shown: %v", p)
	}
	d.Call(s, "three", 1)
	if p := recentPatterns(m.LastQuestion()); len(p) != 1 || p[0] != "csv_parse: seen in 2 of the last 2 calls" {
		t.Errorf("after two events: %v", p)
	}
	d.Restart()
	d.Call(s, "outer", 1)
	for _, q := range m.Questions() {
		p := recentPatterns(q)
		switch q.Method {
		case "outer": // five capabilities are there twice or more: four are shown, the most frequent first
			if len(p) != 4 || p[0] != "csv_parse: seen in 3 of the last 3 calls" {
				t.Errorf("a root call's request shows %v", p)
			}
		case "inner":
			if p != nil {
				t.Errorf("a nested call's request shows %v", p)
			}
		}
	}
	d.Call(d.Session("other"), "first", 1)
	if p := recentPatterns(m.LastQuestion()); p != nil {
		t.Errorf("another role's request shows %v", p)
	}
	for i := range 60 {
		d.Call(s, "one", i)
	}
	d.Call(s, "last", 1)
	if p := recentPatterns(m.LastQuestion()); len(p) != 1 || p[0] != "csv_parse: seen in 5 of the last 5 calls" {
		t.Errorf("of the last five: %v", p)
	}
	o := d.Get("/v1/patterns/miner")
	events, _ := o["events"].([]any)
	if len(events) != 50 {
		t.Fatalf("%d events, want 50", len(events))
	}
	newest := events[49].(map[string]any)
	if newest["method_name"] != "one" || fmt.Sprint(newest["capabilities"]) != "[csv_parse]" ||
		newest["session_id"] != s || newest["status"] != "ok" {
		t.Errorf("the newest event: %v", newest)
	}
}

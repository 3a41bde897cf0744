package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

var evidenceScenarios = []string{"news", "films", "debate", "control", "all"}

// add counts a call in its scenario and in all.
func (tr *trace) add(scenario string, e object) {
	for _, name := range []string{scenario, "all"} {
		n := tr.sums[name]
		if n == nil {
			n = map[string]int{}
			tr.sums[name] = n
		}
		n["calls"]++
		for _, k := range []string{"usage", "correction_usage"} {
			if u, ok := e[k].(object); ok && e["depth"] == 0.0 {
				n["requests"] += int(u["model_requests"].(float64))
				n["tokens"] += int(u["prompt_tokens"].(float64) + u["completion_tokens"].(float64))
			}
		}
		for what, is := range map[string]bool{"stored": e["artifact_hit"] == true,
			"repairs": e["repair_succeeded"] == true, "weak": e["weak_success"] == true,
			"re-asked": e["user_correction_detected"] == true, "history": e["history_access_detected"] == true,
			"corrections": e["correction"] == "adopted"} {
			if is {
				n[what]++
			}
		}
		if judged, ok := e["judged"].(string); ok {
			n[judged]++
		}
	}
}

// evidenceTable is the comparison in Markdown.
func evidenceTable(runs map[string]trace) string {
	columns := []string{"calls", "stored", "requests", "tokens", "right", "wrong", "none", "corrections", "repairs",
		"weak", "re-asked", "history"}
	out := "| scenario | | " + strings.Join(columns, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(columns)) +
		"\n"
	for _, s := range evidenceScenarios {
		for _, run := range []string{"before", "after"} {
			out += "| " + s + " | " + run
			for _, c := range columns {
				out += " | " + strconv.Itoa(runs[run].sums[s][c])
			}
			out += " |\n"
		}
	}
	return out
}

// evidencePicture is an SVG with three groups of bars: requests, tokens and answers that were not right, of each
// scenario before and after.
func evidencePicture(runs map[string]trace) []byte {
	var b bytes.Buffer
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 250" font-family="sans-serif" font-size="11" role="img" aria-label="requests, tokens and answers that were not right, before and after">` + "\n" +
		`<rect width="760" height="250" fill="#fff"/><rect x="20" y="10" width="10" height="10" fill="#b8b8b8"/><text x="35" y="19">before: without memory</text><rect x="180" y="10" width="10" height="10" fill="#2a6f97"/><text x="195" y="19">after: with memory</text>` + "\n")
	for i, panel := range []struct {
		title string
		of    func(n map[string]int) int
	}{{"requests to the model", func(n map[string]int) int { return n["requests"] }},
		{"tokens, in thousands", func(n map[string]int) int { return (n["tokens"] + 500) / 1000 }},
		{"answers wrong or missing", func(n map[string]int) int { return n["wrong"] + n["none"] }}} {
		left, most := 20+250*i, 1
		for _, run := range runs {
			most = max(most, panel.of(run.sums["all"]))
		}
		fmt.Fprintf(&b, `<text x="%d" y="48" font-weight="bold">%s</text>`+"\n", left, panel.title)
		for j, s := range evidenceScenarios {
			x := left + 46*j
			for k, run := range []string{"before", "after"} {
				v := panel.of(runs[run].sums[s])
				h := 150 * v / most
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="18" height="%d" fill="%s"/><text x="%d" y="%d" text-anchor="middle" font-size="10">%d</text>`+"\n",
					x+19*k, 222-h, h, []string{"#b8b8b8", "#2a6f97"}[k], x+19*k+9, 219-h, v)
			}
			fmt.Fprintf(&b, `<text x="%d" y="238" text-anchor="middle">%s</text>`+"\n", x+18, s)
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// evidenceHistory is what the report on the use of history says, without times.
func evidenceHistory(counts map[string]any) string {
	var plain func(v any)
	plain = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				plain(item)
			}
		case map[string]any:
			for k, item := range v {
				if strings.Contains(k, "duration") || k == "since" || k == "until" {
					delete(v, k)
				}
				plain(item)
			}
		}
	}
	plain(counts)
	out := "```json\n"
	for _, k := range []string{"calls", "with_access", "share", "tags", "roles", "by_access", "delegation"} {
		list, ok := counts[k].([]any)
		if !ok {
			list = []any{counts[k]}
		}
		for _, item := range list {
			text, _ := json.Marshal(item) // it came as JSON
			out += k + ": " + string(text) + "\n"
		}
	}
	return out + "```\n"
}

// between is a page with the part between its two marks replaced.
func between(t *testing.T, name, part string) []byte {
	t.Helper()
	const begin, end = "<!-- measured -->\n", "<!-- end -->\n"
	page, err := os.ReadFile(evidenceDir + name)
	head, rest, found := strings.Cut(string(page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if err != nil || !found || !closed {
		t.Fatalf("%s has no place for what is measured (%v)", name, err)
	}
	return []byte(head + begin + part + end + tail)
}

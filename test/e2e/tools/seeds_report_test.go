package tools

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// 000:358, 367, and 003: which tasks are decomposed, and does history help? The history report has delegation patterns,
// outcomes, sizes and durations by history access, and a window. Call lists have a filter.
func TestSeed000Line358(t *testing.T) {
	t.Parallel()
	recall := rig.Program("\tn := 0\n\tfor range call.History() {\n\t\tn++\n\t}\n\tif n > 3 {\n\t\treturn nil, recurgent.Fail(\"too_long\", \"no\")\n\t}\n\treturn n, nil")
	d, ahead := rig.StartAhead(t, rig.NewModel(t, rig.Script{"assistant.ask": {progAsks}, "assistant.recall": {recall},
		"movie finder.find": {progFinds}}))
	s := d.Session("assistant")
	for range 2 {
		d.Call(s, "ask", "action movies") // the second one asks the first, and the call below it, again
	}
	d.Call(s, "recall")
	d.Call(s, "recall")
	d.WantError(d.Call(s, "recall"), "too_long")
	usage := "/v1/reports/history-usage"
	got := d.Get(usage)
	by := got["by_access"].(object)
	with, without := by["with"].(object), by["without"].(object)
	for name, want := range map[string]any{"calls": 3, "ok": 2, "weak": 0, "corrected": 0,
		"error_types": object{"too_long": 1}, "max_history_records": 7} {
		if !rig.Equal(want, with[name]) {
			t.Errorf("with access, %s: %v, want %v", name, with[name], want)
		}
	}
	for name, want := range map[string]any{"calls": 4, "ok": 4, "weak": 2, "corrected": 2, "error_types": object{},
		"max_history_records": 4, "mean_history_records": 2.5} {
		if !rig.Equal(want, without[name]) {
			t.Errorf("without, %s: %v, want %v", name, without[name], want)
		}
	}
	for _, u := range []object{with, without} {
		mean, p95 := u["mean_duration_ms"].(float64), u["p95_duration_ms"].(float64)
		if mean <= 0 || p95 < mean/4 {
			t.Errorf("durations: mean %v, p95 %v", mean, p95)
		}
	}
	pairs := got["delegation"].([]any)
	if len(pairs) != 1 {
		t.Fatalf("delegation: %v", pairs)
	}
	pair := pairs[0].(object)
	delete(pair, "mean_duration_ms")
	if !rig.Equal(object{"from": "assistant.ask", "to": "movie finder.find", "calls": 2, "ok": 2, "weak": 2,
		"with_access": 0}, pair) {
		t.Errorf("delegation: %v", pair)
	}
	for query, want := range map[string]int{"true": 3, "false": 4} {
		list := d.List("/v1/calls?history_access=" + query)
		if len(list) != want {
			t.Errorf("history_access=%s lists %d calls, want %d", query, len(list), want)
		}
		for _, c := range list {
			if c["history_access_detected"] != (query == "true") {
				t.Errorf("history_access=%s lists %v", query, c)
			}
		}
	}
	ahead("48h")
	d.Call(s, "ask", "comedies")
	day := url.QueryEscape(time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339))
	for query, want := range map[string]float64{"?since=" + day: 2, "?until=" + day: 7, "": 9,
		"?since=" + day + "&until=" + day: 0} {
		if got := d.Get(usage + query); got["calls"] != want || got["truncated"] != false {
			t.Errorf("%s: %v calls, truncated %v, want %v", query, got["calls"], got["truncated"], want)
		}
	}
}

// reported makes calls so that no table of the evidence report is empty, writes the report, and returns the command's
// output and the page's path.
func reported(t *testing.T) (printed, page string) {
	t.Helper()
	hostile := "<img onerror=alert(1)>"
	m := rig.NewModel(t, rig.Script{"assistant.ask": {progAsks}, "movie finder.find": {progFinds},
		"broken.go_on":    {rig.ProgPanic},
		hostile + ".find": {rig.ProgMoviesWeak}})
	d := rig.Start(t, m)
	s := d.Session("assistant")
	for range 4 {
		d.Call(s, "ask", "action movies")
	}
	for range 4 {
		d.Call(d.Session(hostile), "find", "action")
	}
	d.Call(d.Session("broken"), "go_on")
	page = filepath.Join(t.TempDir(), "report.html")
	stdout, stderr, code := d.Client("report", "--since", "1h", "--html", page)
	if code != 0 {
		t.Fatalf("report ended with %d: %s", code, stderr)
	}
	return stdout, page
}

// The evidence report is one page with figures, tables and plots that loads nothing else; the terminal shows the same
// tables. Names of roles are escaped.
func TestSeedEvidenceReport(t *testing.T) {
	t.Parallel()
	printed, path := reported(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, text := range []string{"Does history help?", "What decomposes?", "What drifts?", "What do users correct?",
		"assistant.ask", "movie finder.find", "strengthen_contract", "3 of them were asked again"} {
		if !strings.Contains(printed, text) {
			t.Errorf("the terminal does not show %q:\n%s", text, printed)
		}
		if !strings.Contains(page, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
	for _, part := range []string{"<script", "<img", "src=", "href=", "http://", "https://", "url(", "@import"} {
		if strings.Contains(strings.ReplaceAll(page, "http-equiv", ""), part) {
			t.Errorf("the page has %q", part)
		}
	}
	if n := strings.Count(page, "<svg"); n != 3 {
		t.Errorf("%d plots, want 3", n)
	}
	if n := strings.Count(page, "<rect"); n != 12*4+2*3+12*3 {
		t.Errorf("%d bars", n)
	}
	if !strings.Contains(page, "&lt;img onerror=alert(1)&gt;.find") {
		t.Error("the page does not show a hostile role as text")
	}
}

// Package deploy holds what people run beside the daemon: Prometheus rules and a Grafana dashboard. Its tests keep them
// true to the metrics that the daemon has, and to the runbooks that alerts name.
package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// metricNames gathers the names of all series that a daemon has.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	r := telemetry.NewRegistry()
	m := telemetry.New(r, telemetry.Build{}, "acme")
	m.Route("/v1/calls", "GET", false).End(200, time.Millisecond)
	m.Problem("not_found")
	m.ObserveCall(&agent.LogEntry{Role: "r", Method: "m", Generation: "gen-1"}, telemetry.Stages{})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"up": true, "ALERTS": true}
	for _, f := range families {
		names[f.GetName()] = true
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			names[f.GetName()+suffix] = true
		}
	}
	return names
}

type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	files, err := filepath.Glob("prometheus/rules/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	var all []rule
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Groups []struct{ Rules []rule }
		}
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		for _, g := range doc.Groups {
			all = append(all, g.Rules...)
		}
	}
	return all
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ H, W, X, Y int }
	Datasource  struct{ UID string }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

func dashboard(t *testing.T) []panel {
	t.Helper()
	data, err := os.ReadFile("grafana/dashboards/recurgentd.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Panels []panel }
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Panels
}

var (
	quoted = regexp.MustCompile(`"[^"]*"`)
	series = regexp.MustCompile(`\b(?:job[a-z_]*:)?(?:recurgent|process|go|up)(?:_[a-z0-9_:]*)?\b`)
)

// seriesOf returns the names of series that an expression reads.
func seriesOf(expr string) []string {
	return series.FindAllString(quoted.ReplaceAllString(expr, `""`), -1)
}

func TestRulesReadWhatThereIs(t *testing.T) {
	t.Parallel()
	names := metricNames(t)
	all := rules(t)
	for _, r := range all {
		if r.Record != "" {
			names[r.Record] = true
		}
	}
	for _, r := range all {
		read := seriesOf(r.Expr)
		if len(read) == 0 {
			t.Errorf("%s%s reads no series: %s", r.Record, r.Alert, r.Expr)
		}
		for _, n := range read {
			if !names[n] {
				t.Errorf("%s%s reads %s, which no daemon has", r.Record, r.Alert, n)
			}
		}
	}
}

func TestAlertsHaveRunbooksAndTests(t *testing.T) {
	t.Parallel()
	tests := ""
	files, _ := filepath.Glob("prometheus/tests/*.yml")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tests += string(data)
	}
	var books []string
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		books = append(books, r.Alert+".md")
		if s := r.Labels["severity"]; s != "page" && s != "ticket" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
			!strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks/"+r.Alert+".md") {
			t.Errorf("%s lacks annotations: %v", r.Alert, r.Annotations)
		}
		book, err := os.ReadFile("../docs/runbooks/" + r.Alert + ".md")
		if err != nil {
			t.Errorf("%s has no runbook: %v", r.Alert, err)
		}
		for _, want := range []string{"# " + r.Alert, r.Expr, "## What it means", "## Where to look", "## What to do"} {
			if !strings.Contains(string(book), want) {
				t.Errorf("the runbook of %s lacks %q", r.Alert, want)
			}
		}
		for _, want := range []string{" fires", " stays quiet"} {
			if !strings.Contains(tests, "name: "+r.Alert+want) {
				t.Errorf("no test that %s%s", r.Alert, want)
			}
		}
	}
	kept, _ := filepath.Glob("../docs/runbooks/*.md")
	for _, f := range kept {
		if !slices.Contains(books, filepath.Base(f)) {
			t.Errorf("%s belongs to no alert", f)
		}
	}
}

func TestDashboard(t *testing.T) {
	t.Parallel()
	names := metricNames(t)
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	rows := []string{}
	for _, p := range dashboard(t) {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("panel %q: id %d is 0 or there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		if p.FieldConfig.Defaults.Unit == "" || p.Description == "" || p.Datasource.UID != "${datasource}" ||
			len(p.Targets) == 0 {
			t.Errorf("panel %q needs a unit, a description, the data source variable and a query", p.Title)
		}
		for _, q := range p.Targets {
			for _, n := range seriesOf(q.Expr) {
				if !names[n] {
					t.Errorf("panel %q reads %s, which no daemon has", p.Title, n)
				}
			}
			if strings.Count(q.Expr, `{job=~"$job"`) != len(seriesOf(q.Expr)) {
				t.Errorf("panel %q does not select by job and instance: %s", p.Title, q.Expr)
			}
		}
	}
	want := []string{"Answer quality", "Warm share and tokens saved", "Forging", "Tool health",
		"History and weak success", "Runtime", "Store", "Engines and people", "Caps of tokens", "Replicas"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
}

// Every metric of ours is of use somewhere: a figure that neither a panel nor a rule reads is a figure nobody looks at.
func TestEveryMetricIsShown(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, p := range dashboard(t) {
		for _, q := range p.Targets {
			for _, n := range seriesOf(q.Expr) {
				shown[n] = true
			}
		}
	}
	for _, r := range rules(t) {
		for _, n := range seriesOf(r.Expr) {
			shown[n] = true
		}
	}
	was := []string{"recurgent_native_builds_total", "recurgent_native_build_duration_seconds",
		"recurgent_native_faults_total", "recurgent_native_programs", "recurgent_engine_differences_total"}
	// always 0; an annotation; explained in a runbook
	for _, n := range append(was, "recurgent_build_info", "recurgent_artifact_pairs") {
		shown[n] = true
	}
	bases := map[string]bool{}
	for n := range metricNames(t) {
		base := n
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			base = strings.TrimSuffix(base, suffix)
		}
		bases[base] = bases[base] || shown[n]
	}
	for n, is := range bases {
		if strings.HasPrefix(n, "recurgent_") && !is {
			t.Error(fmt.Sprint(n, " is on no panel and in no rule"))
		}
	}
}

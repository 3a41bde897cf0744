package cli

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// evidenceReport holds the data of the report: the daemon's reports over one window, and its current recommendations.
type evidenceReport struct {
	Since   string                `json:"since"`
	Until   string                `json:"until"`
	History operator.HistoryUsage `json:"history_usage"`
	Trends  operator.Trends       `json:"trends"`
	Advice  []operator.Advice     `json:"recommendations"`
}

func reportCommand(sh Shell) *cobra.Command {
	var out *output
	var since time.Duration
	var html string
	c := &cobra.Command{
		Use:   "report",
		Short: "Print the evidence: does history help, what decomposes, what drifts, what do users correct",
		Long: `Print what the daemon's call log says of its programs: whether those that look at the history do better, which methods
call which, which failed because an external source changed, and what users asked again or called wrong. At most the newest
10,000 calls are looked at. With --html the same goes into one page with plots, which needs nothing else.

` + exitsOfClients,
		Example: `  recurgentd report
  recurgentd report --since 24h --html report.html
  recurgentd report --output json | jq .history_usage.by_access`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since < time.Minute || since > 90*24*time.Hour {
				return exitWith(ExitUsage, errors.New("--since must be 1m to 2160h"))
			}
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				r, err := fetchReport(ctx, c, since)
				if err != nil {
					return exitWith(ExitUnreachable, err)
				}
				return printEvidence(out, r, html)
			})
		},
	}
	f := c.Flags()
	out = addOutput(c, sh)
	f.DurationVar(&since, "since", 7*24*time.Hour, "how far back to look: 1m to 2160h")
	f.StringVar(&html, "html", "", "write the report as a page into this file, too")
	addFlags(ClientScope, f)
	return c
}

// fetchReport fetches the parts of the report. The window of the trends determines that of the history.
func fetchReport(ctx context.Context, c *client.Client, since time.Duration) (evidenceReport, error) {
	var r evidenceReport
	if err := c.Get(ctx, "/v1/reports/trends?window="+url.QueryEscape(since.String()), &r.Trends); err != nil {
		return r, err
	}
	r.Since, r.Until = r.Trends.Total.Since, r.Trends.Total.Until
	if err := c.Get(ctx, "/v1/reports/history-usage?since="+url.QueryEscape(r.Since), &r.History); err != nil {
		return r, err
	}
	var list struct {
		Data []operator.Advice `json:"data"`
	}
	err := c.Get(ctx, "/v1/recommendations?limit=100", &list)
	r.Advice = append([]operator.Advice{}, list.Data...)
	return r, err
}

// printEvidence writes the page if html names a file, and prints the report.
func printEvidence(out *output, r evidenceReport, html string) error {
	if html != "" {
		page, err := renderReport(r)
		if err != nil {
			return err
		}
		if err := os.WriteFile(html, page, 0o600); err != nil {
			return err
		}
	}
	if !out.human() {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return out.document(data)
	}
	return out.line("%s", text.Plain(strings.TrimRight(describeEvidence(r), "\n")))
}

// A reportTable holds a question and the figures that answer it.
type reportTable struct {
	Title string
	Head  []string
	Rows  [][]string
	None  string // text in place of an empty table
}

// tables returns the tables of the report, which the terminal and the page share.
func (r *evidenceReport) tables() []reportTable {
	t := r.Trends.Total
	total := reportTable{Title: "Calls", Head: []string{"calls", "errors", "weak successes", "corrections", "forged",
		"repaired"},
		Rows: [][]string{numbers(t.Calls, t.Errors, t.WeakSuccesses, t.Corrections, t.ProgramSource["generated"],
			t.ProgramSource["repaired"])}}
	return []reportTable{total, r.historyTable(), r.delegationTable(), r.driftTable(), r.correctionTable()}
}

func (r *evidenceReport) historyTable() reportTable {
	t := reportTable{Title: "Does history help?", Head: []string{"program", "calls", "ok", "weak", "asked again",
		"mean ms", "p95 ms", "records"}}
	for _, g := range []struct {
		name string
		u    operator.Outcomes
	}{{"looks at the history", r.History.ByAccess.With}, {"does not", r.History.ByAccess.Without}} {
		t.Rows = append(t.Rows, []string{g.name, fmt.Sprint(g.u.Calls), percent(g.u.OK, g.u.Calls),
			percent(g.u.Weak, g.u.Calls), percent(g.u.Corrected, g.u.Calls),
			fmt.Sprintf("%.1f", g.u.MeanDuration), fmt.Sprintf("%.1f", g.u.P95Duration),
			fmt.Sprintf("%.1f", g.u.MeanHistory)})
	}
	return t
}

func (r *evidenceReport) delegationTable() reportTable {
	t := reportTable{Title: "What decomposes?", Head: []string{"from", "to", "calls", "ok", "weak", "mean ms"},
		None: "No program called another."}
	for _, d := range r.History.Delegation[:min(len(r.History.Delegation), 20)] {
		t.Rows = append(t.Rows, []string{text.Cell(d.From), text.Cell(d.To), fmt.Sprint(d.Calls),
			percent(d.OK, d.Calls), percent(d.Weak, d.Calls), fmt.Sprintf("%.1f", d.MeanDuration)})
	}
	return t
}

func (r *evidenceReport) driftTable() reportTable {
	t := reportTable{Title: "What drifts?", Head: []string{"failure", "calls"}, None: "No program failed."}
	for _, class := range countKeys(r.Trends.Total.FailureClass) {
		t.Rows = append(t.Rows, []string{text.Cell(class), fmt.Sprint(r.Trends.Total.FailureClass[class])})
	}
	return t
}

func (r *evidenceReport) correctionTable() reportTable {
	t := reportTable{Title: "What do users correct?", Head: []string{"method", "advice", "score", "why"},
		None: "No method was corrected so often that a change is recommended."}
	for _, a := range r.Advice[:min(len(r.Advice), 20)] {
		t.Rows = append(t.Rows, []string{text.Cell(a.Role + "." + a.Method), text.Cell(a.Kind),
			fmt.Sprintf("%.2f", a.Score), text.OneLine(a.Reason)})
	}
	return t
}

func countKeys(counts map[string]int) []string {
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func numbers(values ...int) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// percent formats part as a percentage of of, or "-" if of is 0.
func percent(part, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of))
}

func describeEvidence(r evidenceReport) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s to %s\n", text.Cell(r.Since), text.Cell(r.Until))
	if r.Trends.Truncated || r.History.Truncated {
		b.WriteString("there were more calls: these are the newest 10,000\n")
	}
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		if len(t.Rows) == 0 {
			fmt.Fprintf(&b, "  %s\n", t.None)
			continue
		}
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			fmt.Fprintf(w, "  %s\n", strings.Join(row, "\t"))
		}
		_ = w.Flush() // writing to a buffer cannot fail
	}
	return b.String()
}

//go:embed report.html.tmpl
var reportPage string

// A plot is a bar chart with one group of bars for each label. Lengths are in pixels.
type plot struct {
	Title         string
	Series        []plotSeries
	Width, Height int
	Bars          []plotBar
	Labels        []plotLabel
	Most          int // the value of a full-height bar
}

type plotSeries struct {
	Name string
	Kind int // index of the series, which determines the colour
}

type plotBar struct {
	X, Y, Width, Height float64
	Kind                int
	Says                string
}

type plotLabel struct {
	X    float64
	Text string
}

// Dimensions of a plot.
const (
	plotWidth  = 720
	plotHeight = 180
	plotFoot   = 24 // for labels
)

// newPlot lays out a plot of values[series][label].
func newPlot(title string, names, labels []string, values [][]int) plot {
	p := plot{Title: title, Width: plotWidth, Height: plotHeight + plotFoot, Most: 1}
	for kind, name := range names {
		p.Series = append(p.Series, plotSeries{name, kind})
		for _, v := range values[kind] {
			p.Most = max(p.Most, v)
		}
	}
	group := float64(plotWidth) / float64(max(1, len(labels)))
	width := group * 0.8 / float64(max(1, len(names)))
	for i, label := range labels {
		p.Labels = append(p.Labels, plotLabel{X: group * (float64(i) + 0.5), Text: label})
		for kind, name := range names {
			height := float64(plotHeight) * float64(values[kind][i]) / float64(p.Most)
			p.Bars = append(p.Bars, plotBar{X: group*(float64(i)+0.1) + width*float64(kind), Y: plotHeight - height,
				Width: width, Height: height, Kind: kind,
				Says: fmt.Sprintf("%s, %s: %d", label, name, values[kind][i])})
		}
	}
	return p
}

// plots returns the plots of the page.
func (r *evidenceReport) plots() []plot {
	var labels []string
	over := func(of func(t operator.Trend) int) []int {
		var out []int
		for _, b := range r.Trends.Buckets {
			out = append(out, of(b))
		}
		return out
	}
	for _, b := range r.Trends.Buckets {
		labels = append(labels, bucketLabel(b.Since, r.Until))
	}
	calls := newPlot("Calls over time", []string{"calls", "errors", "weak successes", "corrections"}, labels,
		[][]int{over(func(t operator.Trend) int { return t.Calls }),
			over(func(t operator.Trend) int { return t.Errors }),
			over(func(t operator.Trend) int { return t.WeakSuccesses }),
			over(func(t operator.Trend) int { return t.Corrections })})
	drift := newPlot("Programs over time", []string{"forged", "repaired", "failed on a changed source"}, labels,
		[][]int{over(func(t operator.Trend) int { return t.ProgramSource["generated"] }),
			over(func(t operator.Trend) int { return t.ProgramSource["repaired"] }),
			over(func(t operator.Trend) int { return t.FailureClass["adaptive"] })})
	with, without := r.History.ByAccess.With, r.History.ByAccess.Without
	share := func(u operator.Outcomes) []int {
		of := max(1, u.Calls)
		return []int{100 * u.OK / of, 100 * u.Weak / of, 100 * u.Corrected / of}
	}
	access := newPlot("Outcomes by access to the history, in percent", []string{"looks at the history", "does not"},
		[]string{"ok", "weak", "asked again"}, [][]int{share(with), share(without)})
	return []plot{calls, access, drift}
}

// bucketLabel formats the beginning of a bucket: as a time if the window ends at most a day later, otherwise as a date.
func bucketLabel(since, until string) string {
	from, err := time.Parse(time.RFC3339, since)
	to, err2 := time.Parse(time.RFC3339, until)
	switch {
	case err != nil || err2 != nil:
		return ""
	case to.Sub(from) <= 24*time.Hour:
		return from.Format("15:04")
	}
	return from.Format("01-02")
}

// renderReport renders the page. The template escapes names and reasons, so they cannot inject markup.
func renderReport(r evidenceReport) ([]byte, error) {
	t, err := template.New("report").Parse(reportPage)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		evidenceReport
		Tables []reportTable
		Plots  []plot
	}{r, r.tables(), r.plots()})
	return b.Bytes(), err
}

package cli

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

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

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// A row holds the measurements of a kernel: for each runner the processor time of one run in seconds, per round. A
// runner that does not run the kernel correctly has none.
type row struct {
	kernel string
	times  map[string][]float64
}

// measure runs every kernel on every runner in turn, in each round. It skips kernels that yaegi does not run correctly.
// A runner that fails, or returns another value than the native one, is an error.
func measure(ks []kernel, runners []*runner, rounds int, seconds float64, progress io.Writer) ([]row, error) {
	var out []row
	for _, k := range ks {
		r := row{kernel: k.name, times: map[string][]float64{}}
		for range rounds {
			var want json.RawMessage
			for _, on := range runners {
				if on.name == onYaegi && !k.yaegi {
					continue
				}
				a, err := on.do(job{k.name, k.n, seconds})
				if err != nil {
					return nil, fmt.Errorf("%s on %s: %w", k.name, on.name, err)
				}
				if on.name == native {
					want = a.Value
				} else if !same(a.Value, want) {
					return nil, fmt.Errorf("%s on %s: %.200s, natively %.200s", k.name, on.name, a.Value, want)
				}
				r.times[on.name] = append(r.times[on.name], a.Seconds)
			}
		}
		fmt.Fprintf(progress, "%s\n", k.name)
		out = append(out, r)
	}
	return out, nil
}

// ratio returns the median over the rounds of a runner's time divided by the native time, or NaN if there are no times.
func (r row) ratio(runner string) float64 {
	var ratios []float64
	for i, t := range r.times[runner] {
		ratios = append(ratios, t/r.times[native][i])
	}
	return median(ratios)
}

// median returns the median, or NaN for an empty list.
func median(of []float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// table returns the rows as a Markdown table with the medians of the columns, and a sentence about CPython.
func table(rows []row, runners []*runner) string {
	var b, rule strings.Builder
	b.WriteString("| kernel | native, ms |")
	rule.WriteString("\n|---|---:|")
	for _, on := range runners[1:] {
		b.WriteString(" " + on.name + " |")
		rule.WriteString("---:|")
	}
	b.WriteString(rule.String() + "\n")
	columns := map[string][]float64{}
	var ahead []string
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %.2f |", r.kernel, 1000*median(r.times[native]))
		for _, on := range runners[1:] {
			x := r.ratio(on.name)
			b.WriteString(" " + number(x) + " |")
			if !math.IsNaN(x) {
				columns[on.name] = append(columns[on.name], x)
			}
		}
		b.WriteString("\n")
		if r.ratio(python) < r.ratio(ours) {
			ahead = append(ahead, r.kernel)
		}
	}
	b.WriteString("| **median** | |")
	for _, on := range runners[1:] {
		b.WriteString(" **" + number(median(columns[on.name])) + "** |")
	}
	b.WriteString("\n")
	if len(columns[python]) > 0 {
		fmt.Fprintf(&b, "\nCPython is ahead of the compiled program on %d of %d", len(ahead), len(rows))
		if len(ahead) > 0 {
			b.WriteString(": " + strings.Join(ahead, ", "))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// number formats a ratio, with a dash for NaN.
func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case x < 9.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// The table goes between these lines of a document.
const (
	opening = "<!-- make bench-kernels writes from here"
	closing = "<!-- to here -->"
)

// write replaces the table in the document.
func write(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), opening)
	if !ok {
		return fmt.Errorf("%s has no line %q", path, opening)
	}
	line, rest, _ := strings.Cut(rest, "\n")
	_, after, ok := strings.Cut(rest, closing)
	if !ok {
		return fmt.Errorf("%s has no line %q", path, closing)
	}
	return os.WriteFile(path, []byte(before+opening+line+"\n\n"+text+"\n"+closing+after), 0o644)
}

package diff

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/minimise"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/native"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// batchSize is how many generated programs are one native binary, and one child process.
const batchSize = 50

// Of the first programs that differ in a run small ones are made, for so long each.
const (
	minimiseCount = 3
	minimiseLimit = 4 * time.Minute
)

// TestDiffGenerated runs generated programs natively and here, with little room for garbage, and compares what they return.
// DIFF_PROGRAMS is the number of programs, DIFF_SEED the first seed; DIFF_MINIMISE=no skips the minimised programs. checkCoverage says what the programs of the default run must contain.
func TestDiffGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("long: generated and recorded programs, and the Go project's tests, against the toolchain")
	}
	const defaultCount, defaultFirst = 500, 1
	count, first := defaultCount, uint64(defaultFirst)
	if s := os.Getenv("DIFF_PROGRAMS"); s != "" {
		count, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("DIFF_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("DIFF_SEED=%d DIFF_PROGRAMS=%d", first, count)
	differ := 0
	covered := map[string]int{}
	for n := 0; n < count; n += batchSize {
		var programs []generate.Program
		for i := n; i < min(n+batchSize, count); i++ {
			p := generate.Write(first + uint64(i))
			programs = append(programs, p)
			if err := countForms(p, covered); err != nil {
				t.Fatal(err)
			}
		}
		under := pressures()[n/batchSize%len(pressures())]
		for i, d := range differences(t, under, programs) {
			if d != "" {
				differ++
				report(t, under, programs[i], d, differ <= minimiseCount && os.Getenv("DIFF_MINIMISE") != "no")
			}
		}
	}
	if count == defaultCount && first == defaultFirst {
		checkCoverage(t, covered)
	}
}

// differences runs programs natively and here; "" stands for a program whose results are the same.
func differences(t testing.TB, under pressure, programs []generate.Program) []string {
	t.Helper()
	results := make(chan []result)
	go func() {
		defer close(results)
		out, err := native.Run(programs)
		if err != nil {
			t.Errorf("the programs do not run natively: %v", err)
			return
		}
		results <- out
	}()
	sources := make([]string, len(programs))
	for i, p := range programs {
		sources[i] = p.Source()
	}
	here := runHereUnder(t, under, sources)
	out := make([]string, len(programs))
	want, ok := <-results
	if !ok {
		t.FailNow()
	}
	for i, got := range here {
		switch {
		case want[i].Name == native.Refused:
			t.Logf("seed %d: the Go compiler fails on it", programs[i].Seed)
		case want[i].Name == native.Dies:
			out[i] = "natively it dies: " + want[i].Panic
		case got.Panic != want[i].Panic:
			out[i] = fmt.Sprintf("got panic %s\nnatively %q", got.Panic, want[i].Panic)
		case got.Error != want[i].Error || got.Encode != want[i].Encode:
			out[i] = fmt.Sprintf("got error %q %q\nnatively %q %q", got.Error, got.Encode, want[i].Error, want[i].Encode)
		case !sameJSON(got.Value, want[i].Value):
			out[i] = "got another value" + firstDifference(got.Value, want[i].Value)
		}
	}
	return out
}

// report logs a program that differs, and a small one that differs in the same way.
func report(t *testing.T, under pressure, p generate.Program, d string, minimise bool) {
	t.Helper()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("generated-%d.go", p.Seed))
	if err := os.WriteFile(path, []byte(p.Source()), 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("seed %d, %v: %s\nthe program: %s", p.Seed, under, d, path)
	if !minimise || strings.HasPrefix(d, "natively") {
		return
	}
	small := minimised(t, under, p, d)
	t.Errorf("seed %d made small: %s\n%s", p.Seed, differences(t, under, []generate.Program{small})[0], small.Text)
}

func minimised(t *testing.T, under pressure, p generate.Program, d string) generate.Program {
	imp, err := std.Importer()
	if err != nil {
		t.Fatal(err)
	}
	suffix := strings.TrimPrefix(p.Main, "Main")
	if differences(t, calm, []generate.Program{p})[0] == d {
		under = calm
	}
	late := time.Now().Add(minimiseLimit)
	text := minimise.Program(p.Text, func(name string) bool { return name == p.Main }, imp, func(texts []string) []bool {
		if time.Now().After(late) {
			return make([]bool, len(texts))
		}
		programs := make([]generate.Program, len(texts))
		for i, text := range texts {
			own := fmt.Sprintf("%sx%d", suffix, i)
			programs[i] = generate.Program{Seed: uint64(i), Main: "Main" + own, Text: strings.ReplaceAll(text, suffix, own)}
		}
		out := make([]bool, len(texts))
		for i, got := range differences(t, under, programs) {
			out[i] = got != "" && kindOf(got) == kindOf(d)
		}
		return out
	})
	return generate.Program{Seed: p.Seed, Main: p.Main, Text: text}
}

// kindOf is what a smaller program must have of a difference: its beginning, and the end of what comes natively, without numbers.
func kindOf(d string) string {
	_, native, _ := strings.Cut(d, "natively")
	native = strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, native)
	return d[:min(len(d), 25)] + native[max(0, len(native)-30):]
}

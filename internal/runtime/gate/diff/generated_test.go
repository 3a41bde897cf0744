package diff

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/minimise"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/native"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

const (
	batchSize     = 20              // programs in one executable
	minimiseCount = 2               // programs that are minimised when several differ
	minimiseLimit = 2 * time.Minute // per program
)

// TestDiffGenerated compares what generated programs return natively and here. DIFF_PROGRAMS is the number of programs,
// DIFF_SEED the first seed; DIFF_MINIMISE=no skips minimising.
func TestDiffGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles programs with the toolchain")
	}
	count, first := 20, uint64(1)
	if s := os.Getenv("DIFF_PROGRAMS"); s != "" {
		count, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("DIFF_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("DIFF_SEED=%d DIFF_PROGRAMS=%d", first, count)
	differ := 0
	for n := 0; n < count; n += batchSize {
		var programs []generate.Program
		for i := n; i < min(n+batchSize, count); i++ {
			programs = append(programs, generate.Write(first+uint64(i)))
		}
		for i, d := range differences(t, programs) {
			// Names of generic types hold the path of the package, which is "tool" only for a program that is
			// built by itself.
			if d != "" && len(programs) > 1 {
				d = byItself(t, programs[i])
			}
			if d != "" {
				differ++
				report(t, programs[i], d, differ <= minimiseCount && os.Getenv("DIFF_MINIMISE") != "no")
			}
		}
	}
}

// differences runs programs natively and here, and returns the difference for each, or "".
func differences(t testing.TB, programs []generate.Program) []string {
	t.Helper()
	b, err := bench()
	if err != nil {
		t.Fatal(err)
	}
	var natively []result
	var failed error
	var both sync.WaitGroup
	both.Go(func() { natively, failed = native.Run(programs) })
	sources := make([]string, len(programs))
	for i, p := range programs {
		sources[i] = p.Source()
	}
	refused, err := b.Build(t.Context(), sources)
	here := make([]result, len(sources))
	turns := make(chan bool, runtime.NumCPU())
	for i, source := range sources {
		if err != nil || refused[i] != nil {
			continue
		}
		both.Go(func() {
			turns <- true
			here[i] = runHere(t, b, source, "[]")
			<-turns
		})
	}
	both.Wait()
	if err := b.Forget(); err != nil {
		t.Error(err)
	}
	switch {
	case len(programs) > 1 && (native.CompilerFails(failed) || native.CompilerFails(err)):
		out := make([]string, len(programs)) // the compiler's message does not name the program on which it fails
		for i, p := range programs {
			out[i] = byItself(t, p)
		}
		return out
	case failed == nil && natively[0].Name == native.Refused && native.CompilerFails(err):
		refused = make([]error, 1)
	case failed != nil || err != nil:
		t.Fatalf("the programs do not run: %v, %v", failed, err)
	}
	out := make([]string, len(programs))
	for i, want := range natively {
		switch {
		case want.Name == native.Refused:
			t.Logf("seed %d: the Go compiler fails on it", programs[i].Seed)
		case want.Name == native.Dies && strings.Contains(want.Panic, "stack overflow") &&
			strings.HasPrefix(here[i].Panic, agent.ErrResourceExhausted):
		case want.Name == native.Dies:
			out[i] = "natively it dies: " + want.Panic
		case refused[i] != nil:
			out[i] = fmt.Sprintf("got refusal %v\nnatively it runs", refused[i])
		default:
			out[i] = difference(here[i], want)
		}
	}
	return out
}

// byItself returns the difference for a program that is built alone.
func byItself(t testing.TB, p generate.Program) string {
	t.Helper()
	p.Text += "\n// by itself\n" // the same source would find the process of before
	return differences(t, []generate.Program{p})[0]
}

// report logs a program that differs, and a minimised one that differs in the same way.
func report(t *testing.T, p generate.Program, d string, minimised bool) {
	t.Helper()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("generated-%d.go", p.Seed))
	if err := os.WriteFile(path, []byte(p.Source()), 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("seed %d: %s\nthe program: %s", p.Seed, d, path)
	if minimised && !strings.HasPrefix(d, "natively") {
		small := small(t, p, d)
		t.Errorf("seed %d made small: %s\n%s", p.Seed, differences(t, []generate.Program{small})[0], small.Text)
	}
}

// small returns the smallest program it finds that differs in the same way.
func small(t *testing.T, p generate.Program, d string) generate.Program {
	t.Helper()
	imp, err := std.Importer()
	if err != nil {
		t.Fatal(err)
	}
	suffix := strings.TrimPrefix(p.Main, "Main")
	late := time.Now().Add(minimiseLimit)
	text := minimise.Program(p.Text, func(name string) bool { return name == p.Main }, imp,
		func(texts []string) []bool {
			if time.Now().After(late) {
				return make([]bool, len(texts))
			}
			programs := make([]generate.Program, len(texts))
			for i, text := range texts {
				own := fmt.Sprintf("%sx%d", suffix, i)
				programs[i] = generate.Program{Seed: uint64(i), Main: "Main" + own,
					Text: strings.ReplaceAll(text, suffix, own)}
			}
			out := make([]bool, len(texts))
			for i, got := range differences(t, programs) {
				out[i] = got != "" && kindOf(got) == kindOf(d)
			}
			return out
		})
	return generate.Program{Seed: p.Seed, Main: p.Main, Text: text}
}

// kindOf returns the part of a difference that a smaller program must show too: its start, and the end of the native
// result, without numbers.
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

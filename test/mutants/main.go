// Command mutants measures how many small faults in a package its tests notice. It makes the same changes as
// gremlins does by default (github.com/go-gremlins/gremlins), but compiles them all into one test binary, each behind a
// number. It first runs every test by itself, to see by which changes it comes, and then for each change the tests that
// come by it, the cheapest first, until one fails: a change costs no build, and mostly a second of tests.
//
//	go run ./test/mutants [flags] ./internal/contract
//
// It prints the changes that no test noticed, as file:line:column of the operator, and the score: noticed / (noticed +
// unnoticed). Changes in code that no test runs are counted apart. Constant declarations and the + of strings are left alone.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// settings are the command line.
type settings struct {
	pkg, tests, tags, run, skip string
	files, at                   *regexp.Regexp
	sample                      int
	seconds                     int           // of processor time, for one run of tests
	wall                        time.Duration // for one run that waits for something
	least                       float64
	verbose                     bool
}

func main() {
	var s settings
	files := flag.String("files", "", "only files whose name matches this expression")
	flag.StringVar(&s.tests, "tests", "", "the package whose tests run; the changed one, if empty")
	at := flag.String("at", "", "only changes whose file:line:column matches this expression")
	flag.IntVar(&s.sample, "sample", 0, "try so many of the changes, always the same ones; 0 for all")
	flag.StringVar(&s.tags, "tags", "scripted", "build tags")
	flag.StringVar(&s.run, "run", "", "tests to run, as for go test")
	flag.StringVar(&s.skip, "skip", "", "tests to leave out, as for go test")
	flag.IntVar(&s.seconds, "cpu", 10, "seconds of processor time, beside ten times what the tests need, after which a run counts as noticed")
	flag.DurationVar(&s.wall, "timeout", time.Minute, "time, beside twenty times what the tests need, after which a run that waits counts as noticed")
	flag.Float64Var(&s.least, "least", 0, "fail below this score, in percent")
	flag.BoolVar(&s.verbose, "v", false, "print every change, and the test that noticed it")
	flag.Parse()
	s.files, s.at, s.pkg = regexp.MustCompile(*files), regexp.MustCompile(*at), flag.Arg(0)
	s.tests = cmp.Or(s.tests, s.pkg)
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := measure(context.Background(), &s); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// measure makes the changes, runs the tests on each and prints what comes of it.
func measure(ctx context.Context, s *settings) error {
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	p, err := load(ctx, s)
	if err != nil {
		return err
	}
	tests, err := p.build(ctx, s, work)
	if err != nil {
		return err
	}
	if err := tests.survey(ctx, work); err != nil {
		return err
	}
	var t tally
	for _, n := range chosen(len(p.mutants), s.sample) {
		m := p.mutants[n-1]
		if !s.at.MatchString(m.at) {
			continue
		}
		verdict, by, err := tests.try(ctx, n)
		if err != nil {
			return err
		}
		t[verdict]++
		if s.verbose || verdict == lived || verdict == limited {
			fmt.Printf("%10s %s %s %s\n", verdict, m.at, m.kind, by)
		}
	}
	if s.sample > 0 {
		fmt.Printf("%d changes, of which a sample:\n", len(p.mutants))
	}
	fmt.Printf("%s: %d changes: %d noticed by a failure, %d by a limit, %d unnoticed; %d in code that no test runs\nscore %.1f %%\n",
		s.pkg, t[killed]+t[limited]+t[lived]+t[uncovered], t[killed], t[limited], t[lived], t[uncovered], t.score())
	if t.score() < s.least {
		return fmt.Errorf("the score is below %.1f %%", s.least)
	}
	return nil
}

// chosen returns the numbers of the changes to try: all, or a sample that depends on their number only.
func chosen(changes, sample int) []int {
	numbers := rand.New(rand.NewPCG(13, 0)).Perm(changes)
	if sample > 0 {
		numbers = numbers[:min(sample, changes)]
	}
	slices.Sort(numbers)
	for i := range numbers {
		numbers[i]++
	}
	return numbers
}

// A verdict is what became of a change.
type verdict int

const (
	killed    verdict = iota // a test failed
	limited                  // the tests used up their time
	lived                    // every test passed
	uncovered                // no test runs the code
)

func (v verdict) String() string { return [...]string{"noticed", "limit", "LIVED", "not run"}[v] }

// tally counts verdicts.
type tally [uncovered + 1]int

func (t *tally) score() float64 {
	noticed := t[killed] + t[limited]
	if noticed+t[lived] == 0 {
		return 100
	}
	return 100 * float64(noticed) / float64(noticed+t[lived])
}

// build compiles the tests with all changes in the package.
func (p *pkg) build(ctx context.Context, s *settings, work string) (*suite, error) {
	overlay, err := p.overlay(work)
	if err != nil {
		return nil, err
	}
	dir, err := exec.CommandContext(ctx, "go", "list", "-tags", s.tags, "-f", "{{.Dir}}", s.tests).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", s.tests, err)
	}
	t := &suite{settings: s, binary: filepath.Join(work, "tests"), dir: strings.TrimSpace(string(dir))}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags", s.tags, "-overlay", overlay, "-o", t.binary, s.tests).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("compile the changes: %w\n%s", err, out)
	}
	return t, nil
}

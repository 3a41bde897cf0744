// Command mutants measures how many small faults in a package its own tests notice. It makes the same changes as
// gremlins does by default (github.com/go-gremlins/gremlins), but compiles them all into one test binary, each behind a
// number, and runs that binary once for each change: a change costs one run of the tests and no build.
//
//	go run ./test/mutants [flags] ./internal/contract
//
// It prints the changes that no test noticed, as file:line:column of the operator, and the score: noticed / (noticed +
// unnoticed). Changes in code that no test runs are counted apart. Constant declarations and the + of strings are left alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// settings are the command line.
type settings struct {
	pkg, tags, run, skip string
	files                *regexp.Regexp
	seconds              int           // of processor time, for one run of the tests
	wall                 time.Duration // for one run that waits for something
	least                float64
	verbose              bool
}

func main() {
	var s settings
	files := flag.String("files", "", "only files whose name matches this expression")
	flag.StringVar(&s.tags, "tags", "scripted", "build tags")
	flag.StringVar(&s.run, "run", "", "tests to run, as for go test")
	flag.StringVar(&s.skip, "skip", "", "tests to leave out, as for go test")
	flag.IntVar(&s.seconds, "cpu", 30, "seconds of processor time after which a run counts as noticed")
	flag.DurationVar(&s.wall, "timeout", time.Minute, "time after which a run that waits counts as noticed")
	flag.Float64Var(&s.least, "least", 0, "fail below this score, in percent")
	flag.BoolVar(&s.verbose, "v", false, "print every change")
	flag.Parse()
	s.files, s.pkg = regexp.MustCompile(*files), flag.Arg(0)
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
	binary, err := p.build(ctx, s, work)
	if err != nil {
		return err
	}
	covered, err := baseline(ctx, s, p.dir, binary, work)
	if err != nil {
		return err
	}
	var t tally
	for i, m := range p.mutants {
		verdict := uncovered
		if covered[i+1] {
			if verdict, err = try(ctx, s, p.dir, binary, i+1); err != nil {
				return err
			}
		}
		t[verdict]++
		if s.verbose || verdict == lived || verdict == limited {
			fmt.Printf("%10s %s %s\n", verdict, m.at, m.kind)
		}
	}
	fmt.Printf("%s: %d changes: %d noticed by a failure, %d by a limit, %d unnoticed; %d in code that no test runs\nscore %.1f %%\n",
		s.pkg, len(p.mutants), t[killed], t[limited], t[lived], t[uncovered], t.score())
	if t.score() < s.least {
		return fmt.Errorf("the score is below %.1f %%", s.least)
	}
	return nil
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

// build compiles the package's tests with all changes in them.
func (p *pkg) build(ctx context.Context, s *settings, work string) (binary string, err error) {
	overlay, err := p.overlay(work)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(work, "tests")
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags", s.tags, "-overlay", overlay, "-o", binary, s.pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile the changes: %w\n%s", err, out)
	}
	return binary, nil
}

// baseline runs the tests without a change and returns the numbers of the changes that they come by.
func baseline(ctx context.Context, s *settings, dir, binary, work string) (map[int]bool, error) {
	list := filepath.Join(work, "covered")
	cmd := tests(ctx, s, dir, binary)
	cmd.Env = append(os.Environ(), "MUTANT=0", "MUTANTS_COVERED="+list)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the tests fail without a change (-skip leaves tests out): %w\n%s", err, out)
	}
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	covered := map[int]bool{}
	for word := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		covered[n] = true
	}
	return covered, nil
}

// try runs the tests with one change.
func try(ctx context.Context, s *settings, dir, binary string, n int) (verdict, error) {
	cmd := tests(ctx, s, dir, binary)
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(n))
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err == nil:
		return lived, nil
	case cmd.ProcessState == nil:
		return lived, err
	case strings.Contains(text, "panic: test timed out"), !cmd.ProcessState.Exited(), strings.Contains(text, "CPU time limit"):
		return limited, nil
	}
	return killed, nil
}

// tests is a run of the tests up to the first failure, under both limits.
func tests(ctx context.Context, s *settings, dir, binary string) *exec.Cmd {
	script := fmt.Sprintf(`ulimit -t %d; exec "$0" -test.failfast -test.timeout %s -test.run "$1" -test.skip "$2"`, s.seconds, s.wall)
	skip := s.skip
	if skip == "" {
		skip = "^$"
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script, binary, s.run, skip)
	cmd.Dir = dir
	return cmd
}

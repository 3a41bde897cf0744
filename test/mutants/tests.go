package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A suite is a test binary with every change in it, and what each of its tests runs.
type suite struct {
	settings    *settings
	binary, dir string
	tests       []test // the cheapest first
}

// A test is a test or a subtest that can run by itself.
type test struct {
	name    string
	cost    time.Duration // of processor time
	covered map[int]bool  // numbers of the changes in code that it runs
}

// depth is how deep subtests count as tests of their own.
const depth = 3

// survey runs every test by itself without a change, to measure its cost and coverage.
func (s *suite) survey(ctx context.Context, work string) error {
	list := s.run(ctx, 0, nil, nil, "-test.v")
	out, err := list.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the tests fail without a change (-skip leaves tests out): %w\n%s", err, out)
	}
	covered := filepath.Join(work, "covered")
	for _, name := range leaves(out) {
		t, err := s.alone(ctx, name, covered)
		if err != nil {
			return err
		}
		if len(t.covered) > 0 {
			s.tests = append(s.tests, t)
		}
	}
	slices.SortFunc(s.tests, func(a, b test) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name))
	})
	s.tests = slices.CompactFunc(s.tests, func(a, b test) bool { return a.name == b.name })
	return nil
}

// leaves returns the names of the tests without subtests that go test -v printed, cut to depth.
func leaves(out []byte) []string {
	var names []string
	parents := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		name, ok := strings.CutPrefix(lines.Text(), "=== RUN   ")
		if !ok {
			continue
		}
		parts := strings.Split(name, "/")
		parts = parts[:min(len(parts), depth)]
		for i := 1; i < len(parts); i++ {
			parents[strings.Join(parts[:i], "/")] = true
		}
		names = append(names, strings.Join(parts, "/"))
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return parents[name] })
}

// alone runs one test by itself. A subtest that passes only with its siblings is replaced by its parent.
func (s *suite) alone(ctx context.Context, name, list string) (test, error) {
	if err := os.Remove(list); err != nil && !errors.Is(err, os.ErrNotExist) {
		return test{}, err
	}
	cmd := s.run(ctx, 0, []string{name}, nil)
	cmd.Env = append(cmd.Env, "MUTANTS_COVERED="+list)
	if out, err := cmd.CombinedOutput(); err != nil {
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			return s.alone(ctx, name[:i], list)
		}
		return test{}, fmt.Errorf("%s fails by itself, without a change: %w\n%s", name, err, out)
	}
	t := test{name: name, cost: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), covered: map[int]bool{}}
	text, err := os.ReadFile(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return test{}, err
	}
	for word := range strings.FieldsSeq(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return test{}, err
		}
		t.covered[n] = true
	}
	return t, nil
}

// batches returns the tests that come by a change, the cheapest first, in groups that grow: most changes are noticed by
// the first of them.
func (s *suite) batches(n int) [][]test {
	var all [][]test
	var batch []test
	room, sum := time.Second, time.Duration(0)
	for _, t := range s.tests {
		if !t.covered[n] {
			continue
		}
		if len(batch) > 0 && sum+t.cost > room {
			all = append(all, batch)
			batch, sum, room = nil, 0, 4*room
		}
		batch, sum = append(batch, t), sum+t.cost
	}
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all
}

// try runs the tests that come by the change, and returns the one that noticed it.
func (s *suite) try(ctx context.Context, n int) (v verdict, by string, err error) {
	v = uncovered
	for _, batch := range s.batches(n) {
		names, cost := []string{}, time.Duration(0)
		for _, t := range batch {
			names, cost = append(names, t.name), cost+t.cost
		}
		cmd := s.run(ctx, n, names, &cost)
		out, err := cmd.CombinedOutput()
		switch text := string(out); {
		case err == nil:
			v = lived
		case cmd.ProcessState == nil:
			return lived, "", err
		case !cmd.ProcessState.Exited(), limit.MatchString(text):
			return limited, failed(text), nil
		default:
			return killed, failed(text), nil
		}
	}
	return v, "", nil
}

// limit is what a run prints that met a limit and could still say so.
var limit = regexp.MustCompile(`panic: test timed out|CPU time limit|out of memory|cannot allocate memory`)

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failed returns the last test that the output names as failed: the innermost.
func failed(out string) string {
	all := failure.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return "the process ended"
	}
	return all[len(all)-1][1]
}

// memory bounds the address space of a run with a change, in bytes: most endless loops allocate.
const memory = 6 << 30

// run runs the named tests, or all if there are no names, up to the first failure. cost is their processor time without a
// change; the run may use ten times as much and some seconds more, and may wait for twenty times as long and a minute more.
func (s *suite) run(ctx context.Context, change int, names []string, cost *time.Duration, flags ...string) *exec.Cmd {
	run, skip := s.settings.run, cmp.Or(s.settings.skip, "^$")
	if names != nil {
		run, skip = pattern(names), "^$"
	}
	script, wall := `exec "$0" "$@"`, time.Hour
	if cost != nil {
		script = fmt.Sprintf(`ulimit -t %d -v %d; exec "$0" "$@"`, s.settings.seconds+int(10*cost.Seconds()), memory>>10)
		wall = s.settings.wall + 20**cost
	}
	args := append([]string{"-c", script, s.binary, "-test.failfast", "-test.timeout", wall.String(), "-test.run", run, "-test.skip", skip}, flags...)
	cmd := exec.CommandContext(ctx, "bash", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(change))
	return cmd
}

// pattern is the expression for -test.run that selects these tests.
func pattern(names []string) string {
	var alternatives []string
	for _, name := range names {
		parts := strings.Split(name, "/")
		for i, p := range parts {
			parts[i] = "^" + regexp.QuoteMeta(p) + "$"
		}
		alternatives = append(alternatives, strings.Join(parts, "/"))
	}
	return strings.Join(alternatives, "|")
}

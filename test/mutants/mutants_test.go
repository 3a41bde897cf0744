package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each change of a package gets the right verdict from the tests that run it.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	s := &settings{pkg: "./testdata/small", tests: "./testdata/small", files: regexp.MustCompile(""), seconds: 1, wall: time.Minute}
	p, err := load(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	tests, err := p.build(t.Context(), s, work)
	if err != nil {
		t.Fatal(err)
	}
	if err := tests.survey(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, t := range tests.tests {
		names = append(names, t.name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "TestSeven TestSmall/four/five TestSmall/three" {
		t.Errorf("tests: got %s", got)
	}
	var got []string
	for i, m := range p.mutants {
		v, by, err := tests.try(t.Context(), i+1)
		if err != nil {
			t.Fatal(err)
		}
		if v == limited {
			by = "" // which of the limits it meets first depends on the machine
		}
		line := strings.SplitN(m.at, ":", 3)[1]
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", line, m.kind, v, strings.SplitN(by, "/", 2)[0])))
	}
	want := []string{
		"7 CONDITIONALS_NEGATION noticed TestSeven",
		"8 INCREMENT_DECREMENT limit",
		"14 CONDITIONALS_NEGATION noticed TestSmall",
		"14 CONDITIONALS_BOUNDARY LIVED",
		"17 INVERT_NEGATIVES not run",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A sample is the same at every time, and all changes are tried without one.
func TestChosen(t *testing.T) {
	t.Parallel()
	if got := chosen(4, 0); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("all: got %v", got)
	}
	got := chosen(1000, 50)
	if len(got) != 50 || len(slices.Compact(slices.Clone(got))) != 50 || got[0] < 1 || got[49] > 1000 || !slices.Equal(got, chosen(1000, 50)) {
		t.Errorf("a sample: got %v", got)
	}
}

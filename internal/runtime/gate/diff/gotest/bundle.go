// Package gotest turns the tests of the Go project, the files under GOROOT/test, into programs. Adapt rewrites one test,
// Left gives the reason why a test cannot become a program, and a Bundle is the result: archives of programs, and a list
// of the tests left out, each with its reason.
//
// It knows nothing of engines: the tests that make the bundle run the gate and the Go toolchain on each program.
package gotest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// A Bundle is every test of one Go version, by its path below GOROOT/test.
type Bundle struct {
	Go       string            // the version that the tests come from, as in "go1.26.8"
	Programs map[string]string // adapted: those that run, and those that the gate or the engine refuses
	Left     map[string]string // why a test does not run
}

// Runs returns the names of the programs that run, sorted.
func (b *Bundle) Runs() []string {
	var out []string
	for name := range b.Programs {
		if b.Left[name] == "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

const listFile = "left-out.txt"

// Read reads a bundle from its directory.
func Read(dir string) (*Bundle, error) {
	b := &Bundle{Programs: map[string]string{}, Left: map[string]string{}}
	archives, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			return nil, err
		}
		for _, f := range a.Files {
			if _, twice := b.Programs[f.Name]; twice {
				return nil, fmt.Errorf("%s: %s is there twice", name, f.Name)
			}
			b.Programs[f.Name] = string(f.Data)
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, listFile))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(list)) {
		line = strings.TrimSuffix(line, "\n")
		if version, ok := strings.CutPrefix(line, "# "); ok {
			b.Go = version
			continue
		}
		name, why, ok := strings.Cut(line, ": ")
		if _, twice := b.Left[name]; !ok || twice {
			return nil, fmt.Errorf("%s: twice, or without a reason: %s", listFile, line)
		}
		b.Left[name] = why
	}
	return b, nil
}

// Write writes the bundle to its directory in place of what was there: an archive for each directory of tests, and the list.
func (b *Bundle) Write(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	archives := map[string]*txtar.Archive{}
	for _, name := range slices.Sorted(maps.Keys(b.Programs)) {
		top, _, nested := strings.Cut(name, "/")
		if !nested {
			top = "test"
		}
		if archives[top] == nil {
			archives[top] = &txtar.Archive{}
		}
		archives[top].Files = append(archives[top].Files, txtar.File{Name: name, Data: []byte(b.Programs[name])})
	}
	for top, a := range archives {
		if err := os.WriteFile(filepath.Join(dir, top+".txtar"), txtar.Format(a), 0o644); err != nil {
			return err
		}
	}
	var list bytes.Buffer
	fmt.Fprintf(&list, "# %s\n", b.Go)
	for _, name := range slices.Sorted(maps.Keys(b.Left)) {
		fmt.Fprintf(&list, "%s: %s\n", name, oneLine(b.Left[name]))
	}
	return os.WriteFile(filepath.Join(dir, listFile), list.Bytes(), 0o644)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// The reasons that begin so are what the gate or the engine says of the program, and can be asked for again.
const (
	GateRefuses   = "the gate refuses it: "
	EngineRefuses = "the engine refuses it: "
)

// Table counts the bundle, as rows of Markdown.
func (b *Bundle) Table() string {
	counts := map[string]int{}
	for _, why := range b.Left {
		counts[group(why)]++
	}
	runs := len(b.Runs())
	var out strings.Builder
	fmt.Fprintf(&out, "| of the %d files of %s | |\n|---|---|\n| run | %d |\n", runs+len(b.Left), b.Go, runs)
	groups := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(groups, func(x, y string) int { return counts[y] - counts[x] })
	for _, g := range groups {
		fmt.Fprintf(&out, "| %s | %d |\n", g, counts[g])
	}
	return out.String()
}

// group is what a reason counts as.
func group(why string) string {
	if rest, ok := strings.CutPrefix(why, GateRefuses); ok {
		switch {
		case strings.HasSuffix(rest, " is not available to programs"):
			rest = "a package that programs may not import"
		case strings.Contains(rest, "undefined: reflect"):
			rest = "more of reflect than DeepEqual"
		case strings.HasPrefix(rest, "program.go:"):
			_, rest, _ = strings.Cut(rest, ": ")
			rest, _, _ = strings.Cut(rest, ": ")
		}
		return GateRefuses + rest
	}
	for _, one := range []string{"is a part of another test", "is not for linux/amd64", "needs an experiment of the toolchain", "has several files", "is about the growth of stacks"} {
		if strings.HasPrefix(why, one) {
			return one
		}
	}
	what, _, _ := strings.Cut(why, ";")
	return what
}

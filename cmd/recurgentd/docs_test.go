package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A fence is a fenced block of a Markdown file.
type fence struct {
	Language string
	Line     int
	Text     []string
}

func fences(t *testing.T, path string) []fence {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []fence
	open := false
	for i, line := range strings.Split(string(data), "\n") {
		language, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open:
			open = false
		case isFence:
			open = true
			all = append(all, fence{Language: language, Line: i + 1})
		case open:
			all[len(all)-1].Text = append(all[len(all)-1].Text, line)
		}
	}
	if open {
		t.Fatalf("%s: the last fence is not closed", path)
	}
	return all
}

// documents are README and everything below docs/.
func documents(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(list, "../../README.md", "../../CONTRIBUTING.md")
}

// A step is a command of a console block and what is printed of it.
type step struct {
	Line    int
	Command string
	Want    []string
}

func steps(blocks []fence) []step {
	var all []step
	for _, b := range blocks {
		if b.Language != "console" {
			continue
		}
		for i, line := range b.Text {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, step{Line: b.Line + 1 + i, Command: command})
			} else if len(all) > 0 {
				all[len(all)-1].Want = append(all[len(all)-1].Want, line)
			}
		}
	}
	return all
}

const stepMark = "=== next step ==="

// Each document's console blocks are run, in order and in one shell, against a daemon on the embedded recording, and say
// what is printed there; "..." stands for anything.
func TestDocumentsTellTheTruth(t *testing.T) {
	for _, path := range documents(t) {
		list := steps(fences(t, path))
		if len(list) == 0 {
			continue
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			d := newDaemon(t, nil)
			outputs := runSteps(t, d, list)
			for i, s := range list {
				want := strings.Join(s.Want, "\n")
				if !matches(want, strings.TrimSpace(outputs[i])) {
					t.Errorf("%s:%d: $ %s\nprints:\n%s\nthe document has:\n%s", path, s.Line, s.Command, strings.TrimSpace(outputs[i]), want)
				}
			}
		})
	}
}

func runSteps(t *testing.T, d *proc, list []step) []string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"recurgentd", "curl"} {
		if _, err := exec.LookPath(name); name == "curl" && err == nil {
			continue // the real one
		}
		if err := os.Symlink(absolute(t, os.Args[0]), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	var script strings.Builder
	for _, s := range list {
		fmt.Fprintf(&script, "{ %s\n} 2>&1\necho; echo '%s'\n", s.Command, stepMark)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", strings.ReplaceAll(script.String(), "http://127.0.0.1:8420", d.url))
	cmd.Dir = t.TempDir()
	cmd.Env = append(cleanEnvironment(cmd.Dir), "RECURGENT_URL="+d.url, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	outputs := strings.Split(string(out), stepMark+"\n")
	if len(outputs) != len(list)+1 {
		t.Fatalf("%d outputs of %d steps:\n%s", len(outputs)-1, len(list), out)
	}
	return outputs
}

// matches compares with "..." as a wildcard.
func matches(want, got string) bool {
	parts := strings.Split(want, "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(got)
}

// What stands in sh blocks is not run, but its syntax, its make targets, its commands and their flags exist.
func TestShellBlocksNameWhatExists(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range documents(t) {
		for _, b := range fences(t, path) {
			if b.Language != "sh" && b.Language != "console" {
				continue
			}
			text := strings.Join(b.Text, "\n")
			if b.Language == "sh" {
				if out, err := exec.Command("sh", "-n", "-c", text).CombinedOutput(); err != nil {
					t.Errorf("%s:%d: %s", path, b.Line, out)
				}
			}
			for _, target := range regexp.MustCompile(`(?m)^\s*make ([a-z-]+)`).FindAllStringSubmatch(text, -1) {
				if !regexp.MustCompile(`(?m)^` + target[1] + `:`).Match(makefile) {
					t.Errorf("%s:%d: there is no make %s", path, b.Line, target[1])
				}
			}
			for _, line := range regexp.MustCompile(`(?m)(?:^|[ /])recurgentd (.*)$`).FindAllStringSubmatch(text, -1) {
				checkCommand(t, fmt.Sprintf("%s:%d", path, b.Line), strings.Fields(line[1]))
			}
		}
	}
}

func checkCommand(t *testing.T, at string, words []string) {
	t.Helper()
	root := rootCommand(shell{env: func(string) (string, bool) { return "", false }})
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find(words[:1])
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "--"); ok && name != "" {
			name, _, _ = strings.Cut(name, "=")
			if c.Flags().Lookup(name) == nil && name != "help" {
				t.Errorf("%s: %s has no flag --%s", at, c.CommandPath(), name)
			}
		}
	}
}

// Links between documents lead somewhere.
func TestDocumentLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	decisions, err := filepath.Glob("../../docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(documents(t), decisions...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %s leads nowhere", path, m[1])
			}
		}
	}
}

// The makefile's help lists every target that the documents name, and make run starts what it says.
func TestMakeTargetsAreListed(t *testing.T) {
	data, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range strings.Fields("help run test test-ops lint fuzz race bench diff crash dist") {
		if !regexp.MustCompile(`(?m)^` + target + `:.*## `).Match(data) {
			t.Errorf("make %s is missing or has no line in make help", target)
		}
	}
	var serve *cobra.Command
	for _, c := range rootCommand(shell{}).Commands() {
		if c.Name() == "serve" {
			serve = c
		}
	}
	line := regexp.MustCompile(`(?m)^\t@exec \./\$\(BIN\) serve (.*)$`).FindStringSubmatch(string(data))
	if line == nil || serve == nil {
		t.Fatal("make run does not start the daemon")
	}
	if err := serve.ParseFlags(strings.Fields(line[1])); err != nil {
		t.Errorf("make run: %v", err)
	}
	if !slices.Contains(strings.Fields(line[1]), "replay") {
		t.Error("make run is not on the recording")
	}
}

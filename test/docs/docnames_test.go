package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli"
)

// Each part of the playbook has commands, and TestDocumentsAreTrue runs them.
func TestPlaybookIsWhole(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range []string{"Diagnose", "Quarantine", "Recover", "Promote", "Maintain"} {
		_, section, found := strings.Cut(string(data), fmt.Sprintf("\n## %d. %s\n", i+1, part))
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, "```console\n$ recurgentd ") {
			t.Errorf("docs/operations.md has no commands to %s", part)
		}
	}
}

// The answer to "why was it forged again" knows every reason that a selection can have.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../internal/runtime/selection/selection.go")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := os.ReadFile("../../docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^\tReason[A-Za-z]+ += "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 10 {
		t.Fatalf("only %d reasons found in selection.go", len(reasons))
	}
	for _, r := range reasons {
		if !strings.Contains(string(answers), "`"+r[1]+"`") {
			t.Errorf("docs/faq.md does not explain the reason %s", r[1])
		}
	}
}

// What stands in sh blocks is not run, but its syntax, its make targets, its commands and their flags exist.
func TestShellBlocksNameWhatExists(t *testing.T) {
	t.Parallel()
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
			for _, line := range regexp.MustCompile(
				`(?m)(?:^|\$ |[;&|] |bin/|[A-Z_]+=\S+ )recurgentd (.*)$`).FindAllStringSubmatch(text, -1) {
				checkCommand(t, fmt.Sprintf("%s:%d", path, b.Line), strings.Fields(line[1]))
			}
		}
	}
}

func checkCommand(t *testing.T, at string, words []string) {
	t.Helper()
	root := cli.Command(cli.Shell{Env: func(string) (string, bool) { return "", false }})
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find(words)
	if err != nil || c == root && !strings.HasPrefix(words[0], "-") {
		t.Errorf("%s: there is no command %s (%v)", at, words[0], err)
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

// Tests, files and figures that the documents name are there.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, top := range []string{"../../internal", "../../test", "../../deploy", "../../bench"} {
		err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllSubmatch(data, -1) {
				tests[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range documents(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(string(data), -1) {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", path, name)
			}
		}
		for _, m := range regexp.MustCompile(
			"`((?:internal|cmd|test|api|deploy|docs|scripts)/[\\w./-]+)`").FindAllStringSubmatch(string(data), -1) {
			if strings.HasPrefix(m[1], "deploy/secrets/") { // the reader makes them
				continue
			}
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s: there is no %s", path, m[1])
			}
		}
	}
}

// Links between documents lead somewhere.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	var decisions []string
	for _, pattern := range []string{"../../docs/decisions/*.md", "../../docs/decisions/superseded/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		decisions = append(decisions, found...)
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

// The index leads to every document.
func TestIndexIsWhole(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range documents(t) {
		name := filepath.Base(path)
		if filepath.Base(filepath.Dir(path)) == "docs" && name != "README.md" &&
			!strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// The makefile's help lists every target that the documents name, and make run starts what it says.
func TestMakeTargetsAreListed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range strings.Fields(
		"help run test test-all test-long lint flaky vulncheck mutate fuzz race bench dist") {
		if !regexp.MustCompile(`(?m)^` + target + `:.*## `).Match(data) {
			t.Errorf("make %s is missing or has no line in make help", target)
		}
	}
	var serve *cobra.Command
	for _, c := range cli.Command(cli.Shell{}).Commands() {
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

package main

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/api/apitest"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/hostile"
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
	return append(list, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md")
}

// A step is a command of a console block and what is printed of it. A command goes on in
// the next line while a quote or a here-document (<<'END') is open, or behind a backslash.
type step struct {
	Line    int
	Command string
	Want    []string
}

// steps returns the commands of the console blocks for that daemon: "" for the usual one, else the word behind console.
func steps(blocks []fence, daemon string) []step {
	var all []step
	for _, b := range blocks {
		if language, for_, _ := strings.Cut(b.Language, " "); language != "console" || for_ != daemon {
			continue
		}
		unfinished := false
		for i, line := range b.Text {
			command, isCommand := strings.CutPrefix(line, "$ ")
			switch {
			case unfinished:
				all[len(all)-1].Command += "\n" + line
			case isCommand:
				all = append(all, step{Line: b.Line + 1 + i, Command: command})
			case len(all) > 0:
				all[len(all)-1].Want = append(all[len(all)-1].Want, line)
				continue
			}
			unfinished = goesOn(all[len(all)-1].Command)
		}
	}
	return all
}

func goesOn(command string) bool {
	if strings.Contains(command, "<<'END'") {
		return !strings.HasSuffix(command, "\nEND")
	}
	return strings.HasSuffix(command, "\\") || strings.Count(command, "'")%2 == 1
}

// The daemons that documents speak to. Each document gets one of its own.
func documentDaemon(t *testing.T, kind string) *proc {
	t.Helper()
	switch kind {
	case "tokens":
		return newDaemon(t, nil, "--auth-tokens-file", writeFile(t, "tokens", "alice  alices-secret-token-1\nbob    bobs-secret-token-22\n"))
	case "model":
		m := newModel(t, script{})
		m.Answer("", "", text("Answer: Paris"))
		return newDaemon(t, m)
	}
	return newDaemon(t, nil)
}

// daemonKinds are the words that may stand behind console.
func daemonKinds() []string { return []string{"", "tokens", "model"} }

const stepMark = "=== next step ==="

// Each document's console blocks are run, in order and in one shell, against a daemon on the embedded recording, and say
// what is printed there; "..." stands for anything.
func TestDocumentsTellTheTruth(t *testing.T) {
	for _, path := range documents(t) {
		for _, kind := range daemonKinds() {
			list := steps(fences(t, path), kind)
			if len(list) == 0 {
				continue
			}
			t.Run(strings.TrimSpace(filepath.Base(path)+" "+kind), func(t *testing.T) {
				t.Parallel()
				outputs := runSteps(t, documentDaemon(t, kind), list)
				for i, s := range list {
					want := strings.TrimSpace(strings.Join(s.Want, "\n"))
					if !matches(want, strings.TrimSpace(outputs[i])) {
						t.Errorf("%s:%d: $ %s\nprints:\n%s\nthe document has:\n%s", path, s.Line, s.Command, strings.TrimSpace(outputs[i]), want)
					}
				}
			})
		}
	}
}

func runSteps(t *testing.T, d *proc, list []step) []string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"recurgentd", "curl"} {
		if help, err := exec.Command("curl", "--help", "all").Output(); name == "curl" && err == nil && strings.Contains(string(help), "--json") {
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
	cmd.Dir, cmd.WaitDelay = t.TempDir(), patience // what a failed step left in the background must not hold the test
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

// What goes to a shell in the guides is all run: there is no other kind of block with commands in them, and none for a daemon that no test starts.
func TestGuidesAreRun(t *testing.T) {
	for _, path := range documents(t) {
		for _, b := range fences(t, path) {
			language, kind, _ := strings.Cut(b.Language, " ")
			if language == "console" && !slices.Contains(daemonKinds(), kind) {
				t.Errorf("%s:%d: no test runs blocks of %q", path, b.Line, b.Language)
			}
			if name := filepath.Base(path); language == "sh" && (name == "http-guide.md" || name == "operations.md") {
				t.Errorf("%s:%d: an example that no test runs; make it a console block", path, b.Line)
			}
		}
	}
}

// P-93 to P-97: each part of the playbook has commands, and TestDocumentsTellTheTruth runs them.
func TestPlaybookIsWhole(t *testing.T) {
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
	source, err := os.ReadFile("../../internal/runtime/selection.go")
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

// every route of the OpenAPI document has an example in the guide.
func TestGuideHasEveryRoute(t *testing.T) {
	doc, err := apitest.Load()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{} // paths by method
	for _, kind := range daemonKinds() {
		for _, s := range steps(fences(t, "../../docs/http-guide.md"), kind) {
			for _, request := range strings.Split(s.Command, "curl ")[1:] {
				path := regexp.MustCompile(`\$U(/[^\s"'?|)]*)`).FindStringSubmatch(request)
				if path == nil {
					continue
				}
				method := http.MethodGet
				if strings.Contains(request, "--json") || strings.Contains(request, " -d ") {
					method = http.MethodPost
				}
				if named := regexp.MustCompile(`-X ([A-Z]+)`).FindStringSubmatch(request); named != nil {
					method = named[1]
				}
				shown[method] = append(shown[method], path[1])
			}
		}
	}
	for pattern, item := range doc.Paths.Map() {
		form := regexp.MustCompile(`^` + regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(pattern), `[^/]+`) + `$`)
		for method := range item.Operations() {
			if !slices.ContainsFunc(shown[method], form.MatchString) {
				t.Errorf("docs/http-guide.md has no example of %s %s", method, pattern)
			}
		}
	}
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
	tests := map[string]bool{}
	for _, top := range []string{"../../cmd", "../../internal", "../../deploy"} {
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
	for _, path := range append(documents(t), "../../docs/baselines/README.md") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(string(data), -1) {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", path, name)
			}
		}
		for _, m := range regexp.MustCompile("`((?:internal|cmd|api|deploy|docs|scripts)/[\\w./-]+)`").FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
				t.Errorf("%s: there is no %s", path, m[1])
			}
		}
	}
}

// The figures of docs/security.md are those of the code.
func TestSecurityFigures(t *testing.T) {
	data, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := hostile.Programs()
	if err != nil {
		t.Fatal(err)
	}
	box := sandbox.DefaultOptions()
	for _, want := range []string{fmt.Sprintf("(%d programs over HTTP", len(programs)), "data " + size(int(box.Memory)) + " ("} {
		if !strings.Contains(string(data), want) {
			t.Errorf("docs/security.md does not say %q", want)
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

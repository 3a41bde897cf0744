package docs

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

	"github.com/recurgentd/recurgentd/test/e2e/rig"
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

// documents lists the pages of the repository's root and of docs/, except for the decisions, which describe their own
// day.
func documents(t *testing.T) []string {
	t.Helper()
	all := []string{"../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/runbooks/*.md", "../../docs/baselines/*.md"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %d documents (%v)", pattern, len(list), err)
		}
		all = append(all, list...)
	}
	return all
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

// The daemons that documents speak to. Each document gets one of its own. instead maps addresses of the document to
// those of the test.
func documentDaemon(t *testing.T, kind string) (d *rig.Daemon, instead map[string]string) {
	t.Helper()
	d, api := daemonOf(t, kind)
	return d, map[string]string{"http://127.0.0.1:8420": d.URL, exampleAPI: api, localName(exampleAPI): localName(api)}
}

func daemonOf(t *testing.T, kind string) (d *rig.Daemon, api string) {
	t.Helper()
	switch kind {
	case "api":
		return connectedDaemon(t)
	case "shop":
		return shopDaemon(t)
	case "tokens":
		return rig.Start(t, nil, "--auth-tokens-file", rig.WriteFile(t, "tokens",
			"alice  alices-secret-token-1\nbob    bobs-secret-token-22\ncarol  carols-secret-token-3 scopes=read,call\nedna   ednas-secret-token-44 namespace=acme scopes=read,call,operate\n")), ""
	case "model":
		m := rig.NewModel(t, rig.Script{"roman_numerals.to_number": {progRoman},
			"sales.report_by_customer": {progByCustomer}})
		m.Answer("", "", rig.Text("Answer: Paris"))
		return rig.Start(t, m), ""
	}
	return rig.Start(t, nil), ""
}

// The model writes these programs for calls in the documents.
var (
	progRoman = rig.Program(`	digits := map[rune]int{'I': 1, 'V': 5, 'X': 10, 'L': 50, 'C': 100, 'D': 500, 'M': 1000}
	numeral, _ := call.Arg(0, "numeral").(string)
	sum, last := 0, 0
	for _, r := range numeral {
		n := digits[r]
		if n == 0 {
			return nil, recurgent.Fail("invalid_input", numeral+" is not a Roman numeral")
		}
		if sum += n; last < n {
			sum -= 2 * last
		}
		last = n
	}
	return sum, nil`)
	progByCustomer = rig.Program(`	in, err := call.OpenText(call.Arg(0, "orders"))
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error())
	}
	sums := map[string]float64{}
	for _, row := range rows[1:] {
		amount, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			return nil, recurgent.Fail("parse_failed", err.Error())
		}
		sums[row[0]] += amount
	}
	out, err := call.Create("by_customer.csv", "text/csv")
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(out, "%s,%v\n", name, sums[name])
	}
	return out.Ref(), nil`, "encoding/csv", "fmt", "maps", "slices", "strconv")
)

// daemonKinds are the words that may stand behind console.
func daemonKinds() []string { return []string{"", "tokens", "model", "api", "shop"} }

const stepMark = "=== next step ==="

// Each document's console blocks are run, in order and in one shell, against a daemon on the embedded recording, and
// say what is printed there; "..." stands for anything.
func TestDocumentsAreTrue(t *testing.T) {
	t.Parallel()
	for _, path := range documents(t) {
		for _, kind := range daemonKinds() {
			list := steps(fences(t, path), kind)
			if len(list) == 0 {
				continue
			}
			t.Run(strings.TrimSpace(filepath.Base(path)+" "+kind), func(t *testing.T) {
				t.Parallel()
				d, instead := documentDaemon(t, kind)
				outputs := runSteps(t, d, list, instead)
				for i, s := range list {
					want := strings.TrimSpace(strings.Join(s.Want, "\n"))
					if got := strings.TrimSpace(outputs[i]); !matches(want, got) &&
						(stages.MatchString(got) || !matches(stages.ReplaceAllString(want, ""), got)) {
						t.Errorf("%s:%d: $ %s\nprints:\n%s\nthe document has:\n%s", path, s.Line, s.Command,
							strings.TrimSpace(outputs[i]), want)
					}
				}
			})
		}
	}
}

func runSteps(t *testing.T, d *rig.Daemon, list []step, instead map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin") // as in a checkout in which make run was said
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"recurgentd", "curl"} {
		if help, err := exec.Command("curl", "--help",
			"all").Output(); name == "curl" && err == nil && strings.Contains(string(help), "--json") {
			continue // the real one
		}
		if err := os.Symlink(rig.Absolute(t, os.Args[0]), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	var script strings.Builder
	for _, s := range list {
		fmt.Fprintf(&script, "{ %s\n} 2>&1\necho; echo '%s'\n", s.Command, stepMark)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*rig.Patience) // a whole document
	defer cancel()
	text := script.String()
	for from, to := range instead {
		text = strings.ReplaceAll(text, from, to)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Dir, cmd.WaitDelay = dir, rig.Patience // what a failed step left in the background must not hold the test
	cmd.Env = append(rig.Environment(cmd.Dir), "RECURGENT_URL="+d.URL, "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	printed := string(out)
	if api := instead[exampleAPI]; api != "" {
		printed = strings.ReplaceAll(strings.ReplaceAll(printed, api, exampleAPI), localName(api),
			localName(exampleAPI))
	}
	outputs := strings.Split(printed, stepMark+"\n")
	if len(outputs) != len(list)+1 {
		t.Fatalf("%d outputs of %d steps:\n%s", len(outputs)-1, len(list), out)
	}
	return outputs
}

// stages are the lines of what a call waits for. One that has ended before it can be followed shows none.
var stages = regexp.MustCompile(
	`(?m)^\S+\.\S+: (selected: |forging|the program is at the gate|running a new program).*\n`)

// matches compares with "..." as a wildcard.
func matches(want, got string) bool {
	parts := strings.Split(want, "...")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(got)
}

// All shell commands in the guides are run: no other block has commands, and none is for a daemon that no test
// starts.
func TestGuidesAreRun(t *testing.T) {
	t.Parallel()
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

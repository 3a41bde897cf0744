// Package hostile is a corpus of hostile and faulty programs, with the permitted outcomes of each. Tests run it against
// the runner and through the real daemon. The package contains only data, and only tests import it.
package hostile

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed *.txt
var files embed.FS

// A Program is one hostile program.
type Program struct {
	Name   string
	Class  string // cpu, mem, fs, net, proc, escape, output, panic, race, leak, poison
	Source string // the whole file
	// Allow lists the permitted outcomes of a call: "value", "value=<JSON>", "authored" (an error of recurgent.Fail),
	// or an error type of the runtime ("tool_error" is an error without a type). "corrected=" with a JSON value or an
	// error type permits an outcome of the corrected program, if programs are corrected before they run.
	Allow []string
}

// groups maps short names to lists of outcomes.
var groups = map[string][]string{
	"refused":  {"invalid_code", "dependency_policy_violation", "tool_registry_violation"},
	"died":     {"execution", "resource_exhausted", "runner_crash", "timeout"},
	"harmless": {"value", "authored"},
}

// Programs returns the corpus. An entry of a file is a line "=== name: outcomes" and the body. The body is a whole file
// if it begins with "package" or is marked "raw". Otherwise it is the body of Run, optionally preceded by a line
// "import a b c" and by declarations that end with a line "---". A line "$REPEAT n text" stands for n copies of text.
func Programs() ([]Program, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var all []Program
	seen := map[string]bool{}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		class := strings.TrimSuffix(e.Name(), ".txt")
		for _, part := range strings.Split("\n"+string(text), "\n=== ")[1:] {
			head, body, _ := strings.Cut(part, "\n")
			name, ends, ok := strings.Cut(head, ":")
			if !ok || seen[name] {
				return nil, fmt.Errorf("%s: entry %q has no ends or comes twice", e.Name(), head)
			}
			seen[name] = true
			p := Program{Name: name, Class: class, Source: source(body)}
			for _, end := range strings.Fields(ends) {
				if end == "resource_exhausted" {
					p.Allow = append(p.Allow, "timeout") // on a slow machine the deadline comes first
				}
				if g := groups[end]; g != nil {
					p.Allow = append(p.Allow, g...)
				} else {
					p.Allow = append(p.Allow, end)
				}
			}
			all = append(all, p)
		}
	}
	return all, nil
}

func source(body string) string {
	body = expand(body)
	if raw, ok := strings.CutPrefix(body, "raw\n"); ok {
		return strings.TrimSuffix(raw, "\n")
	}
	if strings.HasPrefix(strings.TrimSpace(body), "package") {
		return body
	}
	imports := []string{"recurgent"}
	top := ""
	if line, rest, _ := strings.Cut(body, "\n"); strings.HasPrefix(line, "import ") {
		imports = append(imports, strings.Fields(line)[1:]...)
		body = rest
	}
	if t, rest, ok := strings.Cut(body, "---\n"); ok { // declarations before Run
		top, body = t, rest
	}
	var b strings.Builder
	b.WriteString("package tool\n\nimport (\n")
	for _, i := range imports {
		fmt.Fprintf(&b, "\t%q\n", i)
	}
	fmt.Fprintf(&b, ")\n\n%s\nfunc Run(call *recurgent.Call) (any, error) {\n%s\n}\n", top, body)
	return b.String()
}

func expand(body string) string {
	lines := strings.SplitAfter(body, "\n")
	var b strings.Builder
	for _, line := range lines {
		var n int
		var text string
		if rest, ok := strings.CutPrefix(line, "$REPEAT "); ok {
			count, t, _ := strings.Cut(rest, " ")
			n, _ = strconv.Atoi(count)
			text = strings.TrimSuffix(t, "\n")
			for i := range n {
				b.WriteString(strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, "$I", fmt.Sprint(i)), "$J",
					fmt.Sprint(i+1)), `\n`, "\n"))
			}
			b.WriteString("\n")
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// Permits reports whether the outcome is permitted. end is "authored", an error type, or "value" with the JSON in
// value.
func (p Program) Permits(end, value string) bool {
	for _, a := range p.Allow {
		if a == end || end == "value" && a == "value="+value {
			return true
		}
	}
	return false
}

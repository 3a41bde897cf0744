// Package corpus reads the programs that the differential tests run with each engine. Only tests import it.
package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// An Entry is a program with its calls. A line "//args [...]" in the source is a call.
type Entry struct {
	Name, Source string
	Calls        []string // arguments of each call, a JSON array
}

// Read returns all programs of a directory: complete ones (.txt), ones without package clause and imports, which may
// call try (.brief), and single expressions (snippets.lines).
func Read(dir string) ([]Entry, error) {
	var out []Entry
	seen := map[string]bool{}
	for _, kind := range []string{".txt", ".brief"} {
		files, err := filepath.Glob(filepath.Join(dir, "*"+kind))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("no programs *%s in %s: %w", kind, dir, err)
		}
		for _, file := range files {
			a, err := txtar.ParseFile(file)
			if err != nil {
				return nil, err
			}
			for _, f := range a.Files {
				e := entry(strings.TrimSuffix(filepath.Base(file), kind)+"/"+f.Name, string(f.Data), kind == ".brief")
				if seen[e.Name] {
					return nil, fmt.Errorf("two programs are called %s", e.Name)
				}
				seen[e.Name] = true
				out = append(out, e)
			}
		}
	}
	snippets, err := readSnippets(filepath.Join(dir, "snippets.lines"))
	return append(out, snippets...), err
}

// entry returns the entry of a program, with its calls.
func entry(name, text string, brief bool) Entry {
	e := Entry{Name: name, Source: text}
	for line := range strings.Lines(text) {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "//args "); ok {
			e.Calls = append(e.Calls, args)
		}
	}
	if len(e.Calls) == 0 {
		e.Calls = []string{"[]"}
	}
	if brief {
		if strings.Contains(text, "try(") {
			text += try
		}
		e.Source = head(text) + text
	}
	return e
}

// try is a function for brief programs that returns the text of a panic.
const try = `
func try(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return "no panic"
}
`

// others are packages that a brief program does not mean by their names.
var others = []string{allow.Host, allow.Page, "math/rand", "crypto/rand", "debug/pe", "go/scanner", "html/template"}

// head returns the package clause and the imports that the text needs.
func head(text string) string {
	var b strings.Builder
	b.WriteString("package tool\n\nimport (\n\t\"recurgent\"\n")
	for _, p := range allow.Packages() {
		if !slices.Contains(others, p.Path) &&
			regexp.MustCompile(`\b`+p.Name()+`\.[A-Z]`).MatchString(text) {
			fmt.Fprintf(&b, "\t%q\n", p.Path)
		}
	}
	b.WriteString(")\n\n")
	return b.String()
}

// readSnippets returns a program for each line of a file.
func readSnippets(file string) ([]Entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []Entry
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, expr, ok := strings.Cut(line, " | ")
		if !ok {
			return nil, fmt.Errorf("no program: %s", line)
		}
		out = append(out, Entry{Name: "snippets/" + name, Calls: []string{"[]"}, Source: head(expr) +
			"type runtimeError interface {\n\terror\n\tRuntimeError()\n}\n\nfunc Run(call *recurgent.Call) (any, error) {\n\treturn " + expr + ", nil\n}\n"})
	}
	return out, nil
}

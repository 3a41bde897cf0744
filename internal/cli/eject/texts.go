package eject

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime"
)

//go:embed local/*.go module/*.txt
var sources embed.FS

// hostPath is the import path of the host package in this module. Programs and ejected modules import it as
// "recurgent".
const hostPath = "github.com/recurgentd/recurgentd/internal/runtime/recurgent"

// fixedFiles adds the files that are the same in every module: the host package, the code that runs programs, the test
// and main.
func fixedFiles(files map[string]string) error {
	version := "go " + goVersion() + "\n"
	files["go.mod"] = "module ejected\n\n" + version +
		"\nrequire recurgent v0.0.0\n\nreplace recurgent => ./recurgent\n"
	files["recurgent/go.mod"] = "module recurgent\n\n" + version
	for _, tree := range []struct {
		from fs.FS
		dir  string
	}{{runtime.NativeSources, "recurgent"}, {sources, "local"}} {
		if err := copyTree(files, tree.from, tree.dir); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{"main.go.txt": "main.go", "tools_test.go.txt": "tools/tools_test.go"} {
		data, err := fs.ReadFile(sources, "module/"+from)
		if err != nil {
			return err
		}
		files[to] = string(data)
	}
	return nil
}

// copyTree adds the files of a directory and its subdirectories except tests, including third-party licences.
func copyTree(files map[string]string, from fs.FS, dir string) error {
	return fs.WalkDir(from, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || strings.HasSuffix(name, "_test.go"):
			return err
		case d.IsDir() && name == pagesDir && !readsPages(files):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		// Rewrite imports of the host package and its subpackages.
		files[name] = strings.ReplaceAll(strings.ReplaceAll(string(data), strconv.Quote(hostPath), `"recurgent"`),
			`"`+hostPath+"/", `"recurgent/`)
		return nil
	})
}

// pagesDir is the package with which programs parse web pages. It is large, so it is left out unless a program imports
// it.
const pagesDir = "recurgent/html"

func readsPages(files map[string]string) bool {
	for _, text := range files {
		if strings.Contains(text, strconv.Quote(pagesDir)) {
			return true
		}
	}
	return false
}

// goVersion returns the language version of programs: that of the Go release that built this binary.
func goVersion() string {
	parts := strings.SplitN(strings.TrimPrefix(goruntime.Version(), "go"), ".", 3)
	if len(parts) < 2 {
		return "1.26"
	}
	minor := strings.TrimRightFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' })
	return parts[0] + "." + minor
}

// toolsText returns the source of the package that lists the programs.
func toolsText(m *Manifest) string {
	purpose := map[string]string{}
	for _, t := range m.Tools {
		purpose[t.Role] = t.Purpose
	}
	var imports, list strings.Builder
	for i, x := range m.Methods {
		fmt.Fprintf(&imports, "\tp%d %q\n", i+1, "ejected/"+x.Dir)
		fmt.Fprintf(&list, "\t\t{Role: %q, Method: %q, Purpose: %q, Dir: %q, Parameters: %q, Open: %t, Run: p%d.Run},\n", x.Role,
			x.Method, purpose[x.Role], path.Base(x.Dir), x.parameters(), x.Interface != nil && x.Interface.Open, i+1)
	}
	return "// Package tools lists the ejected programs.\npackage tools\n\nimport (\n\t\"ejected/local\"\n" +
		imports.String() + ")\n\n" +
		"// All returns the programs.\nfunc All() []local.Program {\n\treturn []local.Program{\n" + list.String() +
		"\t}\n}\n"
}

// parameters returns the JSON of the program's parameters, or "" if they are not known.
func (x *Program) parameters() string {
	if x.Interface == nil || len(x.Interface.Parameters) == 0 {
		return ""
	}
	return string(agent.Encoded(x.Interface.Parameters))
}

// readmeText returns the README of the module.
func readmeText(m *Manifest) string {
	var b strings.Builder
	b.WriteString("# Ejected tools\n\nPrograms of recurgentd as a Go module of its own. `go test ./...` runs their examples and recorded calls, without network.\n\n" +
		"`echo '{\"role\": \"ROLE\", \"method\": \"METHOD\", \"args\": [1]}' | go run .` calls one. `kwargs` and `context` (the session's memory) may stand beside `args`; the\n" +
		"outcome that is printed has the memory after the call.\n\n`recurgentd tools import .` brings the programs into a daemon.\n\n")
	fmt.Fprintf(&b, "| role | method | directory |\n|---|---|---|\n")
	for _, x := range m.Methods {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", cell(x.Role), cell(x.Method), x.Dir)
	}
	b.WriteString("\n## Differences from recurgentd\n\n- Package variables keep their values between the runs of a process.\n- Maps are ranged over in random order, and the clock is the machine's.\n" +
		"- Contracts are not checked, there is no history of calls, and any address may be fetched.\n- `call.Ask` and `call.Predict` end in an error until `local.Host.Predict` is filled in (`main.go`).\n")
	if len(m.Missing) > 0 {
		b.WriteString("\n## Missing\n\nThe programs call these roles, which are not here:\n\n")
		for _, role := range m.Missing {
			fmt.Fprintf(&b, "- %s\n", cell(role))
		}
	}
	if len(m.LeftOut) > 0 {
		b.WriteString("\n## Left out of the tests\n\n")
		for _, l := range m.LeftOut {
			fmt.Fprintf(&b, "- %s.%s, %s: %s\n", cell(l.Role), cell(l.Method), cell(l.Case), l.Reason)
		}
	}
	return b.String()
}

// cell escapes a name for a table or a list in Markdown.
func cell(name string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "`", "\\`", "*", "\\*", "[", "\\[").Replace(name)
}

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// produced is what the daemon's source code can produce.
type produced struct {
	texts  map[string]bool // string literals and constants that occur outside of lists and comparisons
	fields map[string]bool // struct fields that are set
	uses   map[string]int  // number of uses of selectors and methods, by name
}

// readProducers reads the sources of the daemon without tests. Lists of label values, tables of error types,
// comparisons and cases do not count: a value that occurs only there is never produced.
func readProducers(t *testing.T) produced {
	t.Helper()
	p := produced{texts: map[string]bool{}, fields: map[string]bool{}, uses: map[string]int{}}
	constants, aliases, used := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, top := range []string{"../../cmd", "../../internal"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "/testdata/") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				g, isGen := decl.(*ast.GenDecl)
				f, isFunc := decl.(*ast.FuncDecl)
				switch {
				case isGen && g.Tok == token.CONST:
					noteConstants(g, constants, aliases)
				case isGen && strings.HasSuffix(path, "telemetry/labels.go"): // the label sets
				case isFunc && slices.Contains([]string{"ErrorTypes", "Retriable"}, f.Name.Name):
				default:
					p.note(decl, used)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, other := range aliases {
		used[other] = used[other] || used[name]
	}
	prompt, err := os.ReadFile("../../internal/runtime/prompt/system.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b`).FindAllString(string(prompt), -1) {
		p.texts[word] = true // programs produce the words that prompts ask for
	}
	for name, value := range constants {
		if used[name] {
			p.texts[value] = true
		}
	}
	return p
}

// noteConstants records the string constants of a declaration by name, including those that alias another package's.
func noteConstants(g *ast.GenDecl, constants, aliases map[string]string) {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if i < len(v.Values) {
				if text, ok := stringOf(v.Values[i]); ok {
					constants[name.Name] = text
				} else if s, ok := v.Values[i].(*ast.SelectorExpr); ok {
					aliases[name.Name] = s.Sel.Name
				}
			}
		}
	}
}

// stringOf returns the value of a string literal, also inside a conversion.
func stringOf(e ast.Expr) (string, bool) {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		e = call.Args[0]
	}
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(b.Value)
	return text, err == nil
}

// note records what a declaration produces.
func (p *produced) note(decl ast.Decl, used map[string]bool) {
	skipped := map[ast.Node]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if skipped[n] {
			return false
		}
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, e := range n.List {
				skipped[e] = true
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				skipped[n.X], skipped[n.Y] = true, true
			}
		case *ast.BasicLit:
			if text, ok := stringOf(n); ok {
				p.texts[text] = true
			}
		case *ast.Ident:
			used[n.Name] = true
		case *ast.SelectorExpr:
			p.uses[n.Sel.Name]++
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				p.fields[key.Name] = true
			}
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				if s, ok := l.(*ast.SelectorExpr); ok {
					p.fields[s.Sel.Name] = true
				}
			}
		}
		return true
	})
}

// says reports whether the code produces the text. Labels have _ where reasons of the pool have spaces; header names
// are canonical in the code.
func (p *produced) says(text string) bool {
	return p.texts[text] || p.texts[strings.ReplaceAll(text, "_", " ")] || p.texts[http.CanonicalHeaderKey(text)]
}

var (
	metricRow  = regexp.MustCompile("(?m)^\\| `(recurgent_\\w+)` \\| \\w+ \\| (.*?) \\| .* \\|$")
	labelCell  = regexp.MustCompile("`(\\w+)`: ([^;|]+)")
	logRow     = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$")
	countsOver = []string{"other"} // what a closed set calls everything outside it
)

// Each label value that docs/observability.md lists can be produced by some code.
func TestEveryLabelValueHasAProducer(t *testing.T) {
	t.Parallel()
	p := readProducers(t)
	document, err := os.ReadFile(observabilityPath)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, row := range metricRow.FindAllStringSubmatch(string(document), -1) {
		if strings.Contains(row[0], "Kept for dashboards of before") {
			continue
		}
		for _, label := range labelCell.FindAllStringSubmatch(row[2], -1) {
			for value := range strings.SplitSeq(strings.TrimSpace(label[2]), ", ") {
				seen++
				class := len(value) == 3 && strings.HasSuffix(value, "xx") // a status class, built from its first digit
				if !class && !slices.Contains(countsOver, value) && !p.says(value) {
					t.Errorf("%s{%s=%q}: nothing produces the value", row[1], label[1], value)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d label values found", seen)
	}
}

// Each metric is changed by code outside of its declaration, and each counting method is called.
func TestEveryMetricHasAProducer(t *testing.T) {
	t.Parallel()
	p := readProducers(t)
	files, err := filepath.Glob("../../internal/telemetry/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	methods := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			// which libraries call
			if ok && f.Recv != nil && f.Name.IsExported() &&
				!slices.Contains([]string{"Collect", "Describe", "NewIDs", "NewSpanID"}, f.Name.Name) {
				if methods++; p.uses[f.Name.Name] == 0 {
					t.Errorf("%s: nothing calls %s", filepath.Base(path), f.Name.Name)
				}
			}
			if ok && f.Recv != nil && strings.HasPrefix(f.Name.Name, "new") {
				for _, field := range assigned(f) {
					if p.uses[field] < 2 { // the declaration, and whatever counts
						t.Errorf("%s: nothing counts on %s", f.Name.Name, field)
					}
				}
			}
		}
	}
	if methods < 20 {
		t.Errorf("only %d methods found", methods)
	}
}

// assigned returns the fields of the receiver that the function sets.
func assigned(f *ast.FuncDecl) (fields []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, l := range a.Lhs {
				if s, ok := l.(*ast.SelectorExpr); ok {
					fields = append(fields, s.Sel.Name)
				}
			}
		}
		return true
	})
	return fields
}

// Each field of the call log that docs/observability.md explains is set by some code, and each value that the
// explanation names can be produced.
func TestEveryLogFieldHasAProducer(t *testing.T) {
	t.Parallel()
	p := readProducers(t)
	document, err := os.ReadFile(observabilityPath)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "\n## The call log\n")
	section, _, _ = strings.Cut(section, "\n## ")
	fields, seen := logFields(t), 0
	for _, row := range logRow.FindAllStringSubmatch(section, -1) {
		if row[1] == "field" {
			continue
		}
		seen++
		name, ok := fields[row[1]]
		if !ok || !p.fields[name] {
			t.Errorf("%s: nothing sets the field (%s)", row[1], name)
		}
		for _, value := range regexp.MustCompile("`([a-z]+(?:_[a-z]+)*)`").FindAllStringSubmatch(row[2], -1) {
			if _, isField := fields[value[1]]; !isField && !p.says(value[1]) {
				t.Errorf("%s: nothing produces the value %s", row[1], value[1])
			}
		}
	}
	if seen < 60 {
		t.Errorf("only %d fields found", seen)
	}
}

// logFields returns the fields of agent.LogEntry by JSON name.
func logFields(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/agent/log.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	tag := regexp.MustCompile(`json:"(\w+)`)
	ast.Inspect(file, func(n ast.Node) bool {
		f, ok := n.(*ast.Field)
		if ok && f.Tag != nil && len(f.Names) == 1 {
			if m := tag.FindStringSubmatch(f.Tag.Value); m != nil {
				fields[m[1]] = f.Names[0].Name
			}
		}
		return true
	})
	return fields
}

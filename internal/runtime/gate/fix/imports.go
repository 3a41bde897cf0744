package fix

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// host is the import path of the host package.
const host = "recurgent"

// importName returns the name of an import, guessed from its path if it has none.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	p := importPath(spec)
	if base := path.Base(p); len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		p = path.Dir(p)
	}
	return path.Base(p)
}

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value)
	return p
}

// selected returns, for each name that the file uses as a package, the names selected from it.
func (m *fixer) selected() map[string]map[string]bool {
	unresolved := map[*ast.Ident]bool{}
	for _, id := range m.file.Unresolved {
		unresolved[id] = true
	}
	out := map[string]map[string]bool{}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && unresolved[x] {
				if out[x.Name] == nil {
					out[x.Name] = map[string]bool{}
				}
				out[x.Name][s.Sel.Name] = true
			}
		}
		return true
	})
	return out
}

// foreignImports repairs imports of paths that are not available (the host package under another path, a package of the
// standard library with a wrong path, or a package that nothing uses), and uses of names that packages lack here.
func (m *fixer) foreignImports() {
	// Functions that nothing calls go first, because they may be the only users of an import.
	if m.deadMain() || m.tests() {
		return
	}
	used := m.selected()
	seen := map[string]bool{}
	for _, spec := range m.file.Imports {
		p, name := importPath(spec), importName(spec)
		if seen[name+" "+p] {
			m.fix("an import that stood there twice is left out", m.importLine(spec))
			continue
		}
		seen[name+" "+p] = true
		if _, allowed := m.checker.Names(p); !allowed && name != "." {
			m.foreignImport(spec, used[name])
		} else if allowed {
			m.partlyForeign(p, name, used[name])
		}
	}
}

// foreignImport repairs an import of a path that is not available. has are the names that the program selects from it.
func (m *fixer) foreignImport(spec *ast.ImportSpec, has map[string]bool) {
	p, name := importPath(spec), importName(spec)
	switch {
	case m.isHost(p, name, has):
		text := strconv.Quote(host)
		if name != host {
			text = name + " " + text
		}
		m.fix(fmt.Sprintf("the host package is imported as %q, not as %q", host, p), m.replace(spec, text))
	case len(has) == 0:
		m.fix(fmt.Sprintf("the import of %q, which nothing uses, is left out", p), m.importLine(spec))
	case p == "io/ioutil":
		m.ioutil(name, has)
	case p == "golang.org/x/exp/constraints":
		m.constraints(spec, name)
	case p == "github.com/pkg/errors":
		m.wrapping(spec, name)
	default:
		if to := m.checker.Package(name, has); to != "" && samePackage(p, to) {
			m.fix(fmt.Sprintf("%q is the path of package %s, not %q", to, name, p),
				m.replace(spec.Path, strconv.Quote(to)))
		}
	}
}

// partlyForeign repairs uses of a package that is available but lacks names that the program selects from it.
func (m *fixer) partlyForeign(p, name string, has map[string]bool) {
	names, _ := m.checker.Names(p)
	for n := range has {
		if slices.Contains(names, n) {
			delete(has, n)
		}
	}
	if len(has) == 0 {
		return
	}
	switch p {
	case "net/http":
		m.webClient(name, has)
	case "os":
		m.outputs(name)
	case "log":
		m.logging(name)
	}
}

// constraintsOf maps the constraints of golang.org/x/exp/constraints to what Go has for them.
var constraintsOf = map[string]string{"Ordered": "cmp.Ordered", "Float": "~float32 | ~float64",
	"Signed":   "~int | ~int8 | ~int16 | ~int32 | ~int64",
	"Unsigned": "~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64",
	"Integer":  "~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64"}

// constraints replaces the constraints of golang.org/x/exp/constraints.
func (m *fixer) constraints(spec *ast.ImportSpec, name string) {
	edits := []edit{m.importLine(spec)}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isName(s.X, name) && constraintsOf[s.Sel.Name] != "" {
			edits = append(edits, m.replace(s, constraintsOf[s.Sel.Name]))
		}
		return true
	})
	m.fix("Go has the constraint "+constraintsOf["Ordered"], edits...)
}

// deadMain removes a main next to Run that uses a name that is not available. Nothing calls it.
func (m *fixer) deadMain() bool {
	main, run := m.function("main"), m.function("Run")
	if main == nil || run == nil || !m.called(fieldsOf(run.Type.Params), fieldsOf(run.Type.Results)) {
		return false
	}
	foreign := false
	ast.Inspect(main, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			for _, spec := range m.file.Imports {
				names, _ := m.checker.Names(importPath(spec))
				foreign = foreign || isName(s.X, importName(spec)) && !slices.Contains(names, s.Sel.Name)
			}
		}
		return true
	})
	return foreign && !m.takesValue(main) && m.fix("main, which nothing calls, is left out", m.without(main))
}

// takesValue reports whether main calls Run for its value: it does more than Run alone would.
func (m *fixer) takesValue(main ast.Node) bool {
	used := false
	ast.Inspect(main, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && isName(c.Fun, "Run") {
			_, stands := m.parents[c].(*ast.ExprStmt)
			used = used || !stands
		}
		return true
	})
	return used
}

// tests removes test functions, which nothing calls.
func (m *fixer) tests() bool {
	called := m.calledNames()
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || called[f.Name.Name] {
			continue
		}
		if params := fieldsOf(f.Type.Params); len(params) == 1 &&
			strings.HasPrefix(m.text(params[0].typ), "*testing.") {
			m.fix("a test, which nothing calls, is left out", m.without(f))
		}
	}
	return len(m.edits) > 0
}

// logging replaces the functions of package log that end the process by those that panic.
func (m *fixer) logging(name string) {
	if uses(m.file, "recover") {
		return
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || !isName(s.X, name) {
			return true
		}
		if to, fatal := strings.CutPrefix(s.Sel.Name, "Fatal"); fatal {
			m.fix("what ends the program is a panic", m.replace(s.Sel, "Panic"+to))
		}
		return true
	})
}

// samePackage reports whether p is the path of a package of the standard library with a different prefix or none, or of
// one that went there from golang.org/x.
func samePackage(p, to string) bool {
	if moved, ok := strings.CutPrefix(p, "golang.org/x/"); ok && (moved == to || moved == "net/context") {
		return true
	}
	p = strings.TrimPrefix(strings.TrimPrefix(p, "golang.org/x/exp/"), "std/")
	first, _, _ := strings.Cut(p, "/")
	return !strings.Contains(first, ".") && path.Base(p) == path.Base(to)
}

// isHost reports whether an import means the host package, judging by its path or by the use of Call.
func (m *fixer) isHost(p, name string, has map[string]bool) bool {
	if path.Base(p) == host || strings.Contains(p, "recurgentd") {
		return name == host
	}
	return has["Call"] && (has["Fail"] || len(has) == 1) &&
		slices.Contains([]string{"host", "tool", "runtime", "sdk", "agent"}, path.Base(p))
}

// importLine deletes an import.
func (m *fixer) importLine(spec *ast.ImportSpec) edit {
	if g, ok := m.parents[spec].(*ast.GenDecl); ok && (!g.Lparen.IsValid() || len(g.Specs) == 1) {
		return m.line(g)
	}
	return m.line(spec)
}

// missingImports adds imports for names that only one package can have, and for formats of pictures where none is
// known.
func (m *fixer) missingImports() {
	imported, formats := map[string]bool{}, false
	for _, spec := range m.file.Imports {
		imported[importName(spec)] = true
		formats = formats || strings.Contains(importPath(spec), "image/")
	}
	used := m.selected()
	if (used["image"]["Decode"] || used["image"]["DecodeConfig"]) && !formats && imported["image"] {
		m.importFormats()
		return
	}
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !imported[name] {
			p := m.checker.Package(name, used[name])
			if p == "" && !m.declares(name) {
				p = m.checker.Package(name, nil) // the type checker reports names that it lacks
				if name == host {
					p = host
				}
			}
			if p != "" {
				paths = append(paths, p)
			}
		}
	}
	if len(paths) == 0 {
		return
	}
	m.addImports(paths...)
}

// importFormats imports what image.Decode needs, which knows no format otherwise.
func (m *fixer) importFormats() {
	m.fix("image.Decode knows the formats whose packages are imported", m.after(m.file.Name,
		"\n\nimport (\n\t_ \"image/gif\"\n\t_ \"image/jpeg\"\n\t_ \"image/png\"\n)\n"))
}

// addImports adds imports to the first import declaration, or in a new one.
func (m *fixer) addImports(paths ...string) {
	var list strings.Builder
	for _, p := range paths {
		list.WriteString("\n\t" + strconv.Quote(p))
	}
	note := "the import of " + strings.Join(paths, ", ") + " was missing"
	for _, d := range m.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Lparen.IsValid() {
			at := m.offset(g.Lparen) + 1
			m.fix(note, edit{at, at, list.String() + "\n"})
			return
		}
	}
	m.fix(note, m.after(m.file.Name, "\n\nimport ("+list.String()+"\n)\n"))
}

// unusedImports removes unused imports, but only from a text that was changed already.
func (m *fixer) unusedImports() {
	if !m.begun() {
		return
	}
	used := map[string]bool{}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, spec := range m.file.Imports {
		if name := importName(spec); !used[name] && name != "_" {
			m.fix("", m.importLine(spec))
		}
	}
}

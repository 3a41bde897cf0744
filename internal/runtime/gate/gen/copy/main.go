// Command copy writes the packages below recurgent/html/internal from the modules that go.mod names:
// golang.org/x/net/html and github.com/andybalholm/cascadia, with their licences. It makes two changes. Tables that the
// originals build when a process starts are built on first use, because every runner starts with them and few programs
// read a page. The parser gives up on pages that cost too much work for their size (docs/decisions/0022-pages.md). Run
// go generate in package html after an update; a test compares the result.
package main

//lint:file-ignore SA1019 the order is made before there are types

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A source is a package to copy.
type source struct {
	module, dir string // module, and directory in it
	to          string // directory below internal
	// leave has the base names of files to leave out.
	leave []string
}

var sources = []source{
	{module: "golang.org/x/net", dir: "html", to: "html", leave: []string{"doc.go", "iter.go"}},
	{module: "golang.org/x/net", dir: "html/atom", to: "html/atom", leave: []string{"gen.go"}},
	{module: "github.com/andybalholm/cascadia", dir: ".", to: "cascadia"},
}

// ourPath is the import path prefix of the copies.
const ourPath = "github.com/recurgentd/recurgentd/internal/runtime/recurgent/html/internal/"

// byHand lists the changes to the text that delayTables does not make.
var byHand = []struct{ old, new string }{
	// A table built by an init function is built on first use.
	{"var specialCharReplacer *strings.Replacer\n\nfunc init() {",
		"var specialCharReplacer = sync.OnceValue(func() *strings.Replacer {"},
	{"	specialCharReplacer = strings.NewReplacer(pairs...)\n}", "	return strings.NewReplacer(pairs...)\n})"},
	{"specialCharReplacer.Replace(s)", "specialCharReplacer().Replace(s)"},
	// The parser's work is bounded.
	{"	textNodes map[*Node][]byte\n",
		"	textNodes map[*Node][]byte\n	// work bounds what is looked at and made; see spend.\n	work int\n"},
	{"func (p *parser) addChild(n *Node) {\n",
		`// maxWork and nodeWork bound pages that have the parser look through its stacks, or repeat formatting elements, again and again.
const maxWork, nodeWork = 1 << 27, 32

// spend ends parsing when there was too much work.
func (p *parser) spend(n int) {
	if p.work += n; p.work > maxWork {
		panic("html: too much work for a page of this size")
	}
}

// tokenWork is what a token may cost. A second html or body element compares its attributes with those of the first.
func (p *parser) tokenWork() int {
	n := 1 + len(p.oe) + len(p.afe)
	if p.tok.DataAtom == a.Html || p.tok.DataAtom == a.Body {
		for _, open := range p.oe[:min(2, len(p.oe))] {
			n += 8 * len(open.Attr)
		}
	}
	return n
}

func (p *parser) addChild(n *Node) {
	p.spend(nodeWork)
`},
	{"		p.parseCurrentToken()\n	}\n	for n, b",
		"		p.spend(p.tokenWork())\n		p.parseCurrentToken()\n	}\n	for n, b"},
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: copy <directory of the package html>")
	}
	if err := copyAll(os.Args[1]); err != nil {
		log.Fatal("copy: ", err)
	}
}

// copyAll copies all packages below dir. It returns an error if the changes made are not as many as
// those in byHand.
func copyAll(dir string) error {
	changed := 0
	for _, s := range sources {
		n, err := s.copy(filepath.Join(dir, "internal", s.to))
		if err != nil {
			return fmt.Errorf("%s: %w", s.to, err)
		}
		changed += n
	}
	if changed != len(byHand) {
		return fmt.Errorf("%d of %d changes found their place", changed, len(byHand))
	}
	return nil
}

// copy writes the package and returns how many changes of byHand it made.
func (s source) copy(to string) (changed int, err error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Path}}@{{.Version}}", s.module).Output()
	if err != nil {
		return 0, fmt.Errorf("go list: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	names, err := filepath.Glob(filepath.Join(root, s.dir, "*.go"))
	if err != nil {
		return 0, err
	}
	var files [][]byte
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "_test.go") || slices.Contains(s.leave, filepath.Base(name))
	})
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		text := string(data)
		for _, c := range byHand {
			if strings.Contains(text, c.old) {
				text = strings.Replace(text, c.old, c.new, 1)
				changed++
			}
		}
		files = append(files, []byte(text))
	}
	if files, err = delayTables(files); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return 0, err
	}
	for i, name := range names {
		data, err := finish(files[i], version)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(name)), data, 0o644)
		}
		if err != nil {
			return 0, err
		}
	}
	return changed, copyLicense(root, to)
}

// copyLicense copies the licence of the module.
func copyLicense(root, to string) error {
	data, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "LICENSE"), data, 0o644)
}

// finish adds the header and rewrites imports to the copies. It adds the import of sync if delayTables needs it.
func finish(text []byte, version string) ([]byte, error) {
	for _, p := range [][2]string{{`"golang.org/x/net/html"`, `"` + ourPath + `html"`},
		{`"golang.org/x/net/html/atom"`, `"` + ourPath + `html/atom"`}} {
		text = bytes.ReplaceAll(text, []byte(p[0]), []byte(p[1]))
	}
	if used, named := bytes.Contains(text, []byte("sync.")), bytes.Contains(text, []byte(`"sync"`)); used && !named {
		end := bytes.Index(text, []byte("\npackage ")) + 1
		end += bytes.IndexByte(text[end:], '\n')
		text = slices.Concat(text[:end], []byte("\n\nimport \"sync\"\n"), text[end:])
	}
	return format.Source(append([]byte("// Code generated by copy from "+version+"; DO NOT EDIT.\n\n"), text...))
}

// An edit replaces the bytes [from, to) with text.
type edit struct {
	from, to int
	text     string
}

// delayTables turns each package variable that holds a map literal into a function that builds the map once.
func delayTables(files [][]byte) ([][]byte, error) {
	fset := token.NewFileSet()
	edits := make([][]edit, len(files))
	parsed := make([]*ast.File, len(files))
	tables := map[string]*ast.Object{}
	for i, text := range files {
		var err error
		if parsed[i], err = parser.ParseFile(fset, "", text, 0); err != nil {
			return nil, err
		}
		for _, d := range parsed[i].Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				if len(spec.Names) != 1 || len(spec.Values) != 1 {
					continue
				}
				if table, ok := spec.Values[0].(*ast.CompositeLit); ok && isMap(table) {
					tables[spec.Names[0].Name] = spec.Names[0].Obj
					edits[i] = append(edits[i], delay(fset, text, table)...)
				}
			}
		}
	}
	for i, f := range parsed {
		edits[i] = append(edits[i], uses(fset, f, tables)...)
		files[i] = apply(files[i], edits[i])
	}
	return files, nil
}

// isMap reports whether a literal is a map.
func isMap(lit *ast.CompositeLit) bool {
	_, ok := lit.Type.(*ast.MapType)
	return ok
}

// delay returns the edits that wrap a table in a function.
func delay(fset *token.FileSet, text []byte, table *ast.CompositeLit) []edit {
	from, to := fset.Position(table.Pos()).Offset, fset.Position(table.End()).Offset
	kind := text[from:fset.Position(table.Type.End()).Offset]
	return []edit{{from, from, "sync.OnceValue(func() " + string(kind) + " { return "}, {to, to, "})"}}
}

// uses returns the edits that add a call to each use of a table. The parser resolves the name in the file that declares
// the table; in other files it is unresolved.
func uses(fset *token.FileSet, f *ast.File, tables map[string]*ast.Object) []edit {
	elsewhere := map[*ast.Ident]bool{}
	for _, id := range f.Unresolved {
		elsewhere[id] = true
	}
	var out []edit
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		table := tables[id.Name]
		declared := table != nil && table.Decl.(*ast.ValueSpec).Names[0] == id
		if table != nil && !declared && (id.Obj == table || elsewhere[id]) {
			at := fset.Position(id.End()).Offset
			out = append(out, edit{at, at, "()"})
		}
		return true
	})
	return out
}

// apply carries out edits from the last to the first, so that earlier offsets stay valid.
func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text = slices.Concat(text[:e.from], []byte(e.text), text[e.to:])
	}
	return text
}

package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/gcexportdata"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/exports"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/goversion"
)

// A library knows the allowed packages by their types. Packages are decoded when a program first imports them and shared by all checks.
type library struct {
	fset    *token.FileSet
	allowed map[string]allow.Package
	data    map[string][]byte
	decoded map[string]*types.Package // by true path, as export data refers to packages
	shown   map[string]*types.Package // by import path, without the hidden names
	generic map[string][]genericDecl
	units   map[string]Unit          // generic packages that are always whole, because export data refers to them
	aliases map[*types.TypeName]bool // types of other packages that an allowed one gives a name to; nil until asked for
}

// A genericDecl is a declaration of a generic package; see gen.
type genericDecl struct {
	Names   []string `json:"names"`
	Text    string   `json:"text"`
	Needs   []string `json:"needs"`
	Imports []string `json:"imports"`
}

func newLibrary() (*library, error) {
	l := &library{fset: token.NewFileSet(), allowed: map[string]allow.Package{}, data: map[string][]byte{},
		decoded: map[string]*types.Package{}, shown: map[string]*types.Package{}, units: map[string]Unit{}}
	for _, p := range allow.Packages() {
		l.allowed[p.Path] = p
	}
	bin := []byte(exports.Packages)
	for len(bin) > 0 {
		line, rest, ok := bytes.Cut(bin, []byte("\n"))
		var path string
		var n int
		if _, err := fmt.Sscanf(string(line), "%s %d", &path, &n); err != nil || !ok || n > len(rest) {
			return nil, fmt.Errorf("gate: embedded export data: %w", err)
		}
		l.data[path], bin = rest[:n], rest[n:]
	}
	if err := json.Unmarshal([]byte(exports.Generic), &l.generic); err != nil {
		return nil, fmt.Errorf("gate: embedded generic packages: %w", err)
	}
	for _, path := range []string{"cmp", "iter"} {
		u, err := l.checkGeneric(l.fset, path, l.wholeSource(path), nil)
		if err != nil {
			return nil, err
		}
		l.units[path], l.decoded[path] = u, u.Pkg
	}
	return l, nil
}

// programBase is where the positions of a program begin, beyond all of the library's.
const programBase = 1 << 30

// programFiles returns the file set of one program. go/ssa decides by positions which types are declared within a function, so no two files that
// it compiles together may share any: a type of the program would become two.
func (l *library) programFiles() *token.FileSet {
	if l.fset.Base() >= programBase {
		panic("gate: the library has too many positions") // some MB are in use
	}
	fset := token.NewFileSet()
	fset.AddFile("library", 1, programBase)
	return fset
}

func truePath(path string) string {
	if path == allow.Host {
		return allow.HostPath
	}
	return path
}

// load returns an allowed package as programs see it.
func (l *library) load(path string) (*types.Package, error) {
	if p := l.shown[path]; p != nil {
		return p, nil
	}
	if u, ok := l.units[path]; ok {
		return u.Pkg, nil
	}
	data, ok := l.data[path]
	if !ok {
		return nil, fmt.Errorf("package %s is not available to programs", path)
	}
	whole, err := gcexportdata.Read(bytes.NewReader(data), l.fset, l.decoded, truePath(path))
	if err != nil {
		return nil, err
	}
	// A package of its own with the visible names: the objects keep their true home.
	p := types.NewPackage(path, whole.Name())
	spec := l.allowed[path]
	for _, name := range whole.Scope().Names() {
		if ast.IsExported(name) && spec.Shows(name) {
			p.Scope().Insert(whole.Scope().Lookup(name))
		}
	}
	p.SetImports([]*types.Package{whole})
	p.MarkComplete()
	l.shown[path] = p
	return p, nil
}

// wholeSource returns a generic package as one file.
func (l *library) wholeSource(path string) string {
	names := map[string]bool{}
	for _, d := range l.generic[path] {
		for _, n := range d.Names {
			names[n] = true
		}
	}
	return l.source(path, names)
}

// source returns a generic package as one file with just the declarations of those names and what they need.
func (l *library) source(path string, want map[string]bool) string {
	decls := l.generic[path]
	in := make([]bool, len(decls))
	for again := true; again; {
		again = false
		for i, d := range decls {
			if in[i] || !slices.ContainsFunc(d.Names, func(n string) bool {
				owner, _, isMethod := strings.Cut(n, ".")
				return want[n] || isMethod && want[owner]
			}) {
				continue
			}
			in[i], again = true, true
			for _, n := range d.Needs {
				want[n] = true
			}
		}
	}
	var body strings.Builder
	imports := map[string]bool{}
	for i, d := range decls {
		if in[i] {
			body.WriteString(d.Text + "\n\n")
			for _, p := range d.Imports {
				imports[p] = true
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n", l.allowed[path].Name())
	for _, p := range slices.Sorted(maps.Keys(imports)) {
		fmt.Fprintf(&b, "import %q\n", p)
	}
	return b.String() + body.String()
}

// checkGeneric type-checks a generic package from source.
func (l *library) checkGeneric(fset *token.FileSet, path, source string, imp types.Importer) (Unit, error) {
	file, err := parser.ParseFile(fset, path+".go", source, parser.SkipObjectResolution)
	if err != nil {
		return Unit{}, fmt.Errorf("gate: package %s: %w", path, err)
	}
	if imp == nil {
		imp = importerFunc(l.load)
	}
	u := Unit{Info: newInfo(), Files: []*ast.File{file}}
	conf := types.Config{Importer: imp, Sizes: types.SizesFor("gc", runtime.GOARCH), GoVersion: goversion.Name}
	if u.Pkg, err = conf.Check(path, fset, u.Files, u.Info); err != nil {
		return Unit{}, fmt.Errorf("gate: package %s: %w", path, err)
	}
	return u, nil
}

type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes: map[ast.Node]*types.Scope{}, Instances: map[*ast.Ident]types.Instance{}, FileVersions: map[*ast.File]string{},
	}
}

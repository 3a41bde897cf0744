package gate

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"runtime"
	"slices"
	"strconv"
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
	data    map[string]string         // export data, by import path
	decoded map[string]*types.Package // by true path, as export data refers to packages
	shown   map[string]*types.Package // by import path, without the hidden names
	sources map[string]string         // declarations of generic packages, as JSON
	generic map[string][]genericDecl  // those that were read; see decls
	units   map[string]Unit           // of whole, those that were checked
	aliases map[*types.TypeName]bool  // types of other packages that an allowed one gives a name to; nil until asked for
}

// A genericDecl is a declaration of a generic package; see gen.
type genericDecl struct {
	Names   []string `json:"names"`
	Text    string   `json:"text"`
	Needs   []string `json:"needs"`
	Imports []string `json:"imports"`
}

func newLibrary() (*library, error) {
	list := allow.Packages()
	l := &library{fset: token.NewFileSet(), allowed: make(map[string]allow.Package, len(list)), decoded: map[string]*types.Package{},
		shown: map[string]*types.Package{}, generic: map[string][]genericDecl{}, units: map[string]Unit{}}
	for _, p := range list {
		l.allowed[p.Path] = p
	}
	var err error
	if l.data, err = unbundle(exports.Packages, len(list)); err == nil {
		l.sources, err = unbundle(exports.Generic, 0)
	}
	if err == nil { // every program imports it; a runner that waits for a program has it ready
		_, err = l.load(allow.Host)
	}
	return l, err
}

// unbundle takes apart what gen has put together: for each part a line with its name and the number of bytes that follow. It copies nothing.
func unbundle(bundle string, parts int) (map[string]string, error) {
	all := make(map[string]string, parts)
	for bundle != "" {
		line, rest, _ := strings.Cut(bundle, "\n")
		name, size, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(size)
		if err != nil || n > len(rest) {
			return nil, fmt.Errorf("gate: embedded packages: %.100q", line)
		}
		all[name], bundle = rest[:n], rest[n:]
	}
	return all, nil
}

// whole are generic packages that are checked whole and shared by all checks, because packages refer to them: to cmp generic ones only, to iter those
// with export data, too. That holds what it needs of iter, which is enough for programs that import no generic package; see withIter.
var whole = []string{"cmp", "iter"}

// unit returns one of whole.
func (l *library) unit(path string) (Unit, error) {
	if u, ok := l.units[path]; ok {
		return u, nil
	}
	u, err := l.checkGeneric(l.fset, path, l.wholeSource(path), nil)
	if err == nil {
		l.units[path], l.decoded[path] = u, u.Pkg
	}
	return u, err
}

// withIter returns a library with the whole package iter: the same one, or a new one if export data has been read that brought its own part of it.
func (l *library) withIter() (*library, error) {
	if _, ok := l.units["iter"]; !ok && l.decoded["iter"] != nil {
		fresh, err := newLibrary()
		if err != nil {
			return nil, err
		}
		l = fresh
	}
	_, err := l.unit("iter")
	return l, err
}

// decls returns the declarations of a generic package.
func (l *library) decls(path string) []genericDecl {
	if l.generic[path] == nil {
		var decls []genericDecl
		if err := json.Unmarshal([]byte(l.sources[path]), &decls); err != nil {
			panic(fmt.Sprintf("gate: embedded package %s: %v", path, err)) // gen has made it, and a test reads it
		}
		l.generic[path] = decls
	}
	return l.generic[path]
}

// load returns an allowed package as programs see it.
func (l *library) load(path string) (*types.Package, error) {
	if p := l.shown[path]; p != nil {
		return p, nil
	}
	if slices.Contains(whole, path) {
		u, err := l.unit(path)
		return u.Pkg, err
	}
	data, ok := l.data[path]
	if !ok {
		return nil, fmt.Errorf("package %s is not available to programs", path)
	}
	all, err := gcexportdata.Read(strings.NewReader(data), l.fset, l.decoded, allow.TruePath(path))
	if err != nil {
		return nil, err
	}
	// A package of its own with the visible names: the objects keep their true home.
	p := types.NewPackage(path, all.Name())
	spec := l.allowed[path]
	for _, name := range all.Scope().Names() {
		if ast.IsExported(name) && spec.Shows(name) {
			p.Scope().Insert(all.Scope().Lookup(name))
		}
	}
	p.SetImports([]*types.Package{all})
	p.MarkComplete()
	l.shown[path] = p
	return p, nil
}

// wholeSource returns a generic package as one file.
func (l *library) wholeSource(path string) string {
	names := map[string]bool{}
	for _, d := range l.decls(path) {
		for _, n := range d.Names {
			names[n] = true
		}
	}
	return l.source(path, names)
}

// source returns a generic package as one file with just the declarations of those names and what they need.
func (l *library) source(path string, want map[string]bool) string {
	decls := l.decls(path)
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

package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/gcexportdata"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/exports"
)

// A library holds the types of the allowed packages. It decodes a package when a program first imports it, and all
// checks share the result. It is not safe for concurrent use.
type library struct {
	fset    *token.FileSet
	allowed map[string]allow.Package
	data    map[string]string         // export data, by import path
	decoded map[string]*types.Package // by true path, as export data refers to packages
	shown   map[string]*types.Package // by import path, without the hidden names
	// aliases has the types of other packages that an allowed package has an alias for. It is nil until aliased fills
	// it.
	aliases map[*types.TypeName]bool
}

// newLibrary returns a library that has decoded only the host package.
func newLibrary() (*library, error) {
	list := allow.Packages()
	l := &library{fset: token.NewFileSet(), allowed: make(map[string]allow.Package, len(list)),
		decoded: map[string]*types.Package{},
		shown:   map[string]*types.Package{}}
	for _, p := range list {
		l.allowed[p.Path] = p
	}
	var err error
	// Every program imports the host package. A runner that waits for a program has it ready.
	if l.data, err = unbundle(exports.Packages, len(list)); err == nil {
		_, err = l.load(allow.Host)
	}
	return l, err
}

// unbundle splits what gen has put together: for each part a line with its name and size, and that many bytes. The
// parts share the memory of bundle.
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

// has reports whether an allowed package declares the name, which programs may be unable to use.
func (l *library) has(path, name string) bool {
	p, err := l.load(path)
	return err == nil && p.Imports()[0].Scope().Lookup(name) != nil
}

// load returns an allowed package as programs see it: without hidden names. It returns an error for a package that is
// not allowed.
func (l *library) load(path string) (*types.Package, error) {
	if p := l.shown[path]; p != nil {
		return p, nil
	}
	data, ok := l.data[path]
	if !ok {
		return nil, fmt.Errorf("package %s is not available to programs", path)
	}
	all, err := gcexportdata.Read(strings.NewReader(data), l.fset, l.decoded, allow.TruePath(path))
	if err != nil {
		return nil, err
	}
	// p is a new package with the visible names. The objects keep their true package, so types stay identical across
	// packages.
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

// importerFunc makes a function a types.Importer.
type importerFunc func(path string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }

// newInfo returns an Info in which the type checker records everything.
func newInfo() *types.Info {
	return &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses:      map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes: map[ast.Node]*types.Scope{}, Instances: map[*ast.Ident]types.Instance{},
		FileVersions: map[*ast.File]string{},
	}
}

// Package walk finds out what the functions of the standard library reach, from their source. It follows every
// reference to a function or a package variable, but no call through an interface: a value behind an interface was made
// by a function that the walk sees. Only tests import it.
package walk

import (
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// A Sink is something that a function reaches.
type Sink string

// The sinks. State is followed by the name of the package variable that changes.
const (
	Outside   Sink = "outside"   // system calls, environment, arguments, the process itself
	Goroutine Sink = "goroutine" // a go statement
	Timer     Sink = "timer"
	Clock     Sink = "clock"
	Random    Sink = "random"
	Prints    Sink = "prints" // to the standard outputs
	State     Sink = "state "
)

// A Standard is the standard library of the installed toolchain.
type Standard struct {
	Packages map[string]*types.Package // public ones, by path
	uses     map[types.Object][]types.Object
	direct   map[types.Object]map[Sink]bool
}

// Load reads the standard library for linux without cgo.
func Load() (*Standard, error) {
	conf := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles |
		packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")}
	list, err := packages.Load(conf, "std")
	if err != nil {
		return nil, err
	}
	s := &Standard{Packages: map[string]*types.Package{}, uses: map[types.Object][]types.Object{},
		direct: map[types.Object]map[Sink]bool{}}
	packages.Visit(list, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			err = fmt.Errorf("%s: %v", p.PkgPath, e)
		}
		if public(p.PkgPath) {
			s.Packages[p.PkgPath] = p.Types
		}
		for _, f := range p.Syntax {
			s.file(p, f)
		}
	})
	return s, err
}

// public reports whether programs outside of the standard library can import a package of it.
func public(path string) bool {
	return !slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool {
		return part == "internal" || part == "vendor"
	})
}

// file records the references in the declarations of a file.
func (s *Standard) file(p *packages.Package, f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if o := p.TypesInfo.Defs[d.Name]; o != nil {
				s.references(p, o, d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for i, name := range v.Names {
					for j, value := range v.Values {
						if len(v.Values) != len(v.Names) || i == j {
							s.references(p, p.TypesInfo.Defs[name], value)
						}
					}
				}
			}
		}
	}
}

// references records what a node refers to as used by o.
func (s *Standard) references(p *packages.Package, o types.Object, n ast.Node) {
	if sink, end := ends(o); end {
		s.mark(o, sink)
		return
	}
	if f, ok := n.(*ast.FuncDecl); ok && f.Body == nil {
		s.mark(o, leaf(o))
		return
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			s.mark(o, Goroutine)
		case *ast.CompositeLit:
			s.made(o, p.TypesInfo.TypeOf(n))
		case *ast.CallExpr:
			s.called(p, o, n)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				s.changed(p, o, e)
			}
			s.assigned(p, n)
		case *ast.Ident:
			switch to := p.TypesInfo.Uses[n].(type) {
			case *types.Func:
				s.uses[o] = append(s.uses[o], to.Origin())
			case *types.Var:
				if to.Pkg() != nil && to.Parent() == to.Pkg().Scope() {
					s.uses[o] = append(s.uses[o], to)
				}
			}
		}
		return true
	})
}

// made records that o makes a value of an unexported type: its methods may be called through an interface. The methods
// of an exported one are walked by themselves.
func (s *Standard) made(o types.Object, t types.Type) {
	if p, ok := t.Underlying().(*types.Pointer); ok { // an element of a list of pointers
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok && !n.Obj().Exported() {
		for m := range n.Origin().Methods() {
			s.uses[o] = append(s.uses[o], m)
		}
	}
}

// called records that o calls a method that changes a package variable, such as a map of package sync.
func (s *Standard) called(p *packages.Package, o types.Object, n *ast.CallExpr) {
	sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if ok && slices.ContainsFunc([]string{"Add", "CompareAndSwap", "LoadOrStore", "Set", "Store", "Swap"},
		func(begin string) bool { return strings.HasPrefix(sel.Sel.Name, begin) }) {
		s.changed(p, o, sel.X)
	}
}

// changed records that o changes a package variable, if e is one or a part of one.
func (s *Standard) changed(p *packages.Package, o types.Object, e ast.Expr) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.IndexExpr:
			e = x.X
			continue
		case *ast.SelectorExpr:
			if p.TypesInfo.Selections[x] != nil {
				e = x.X
				continue
			}
			e = x.Sel
		case *ast.Ident:
			if v, ok := p.TypesInfo.Uses[x].(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				s.mark(o, State+Sink(v.Pkg().Path()+"."+v.Name()))
			}
			return
		default:
			return
		}
	}
}

// assigned records what is assigned to package variables, such as functions that an init function chooses.
func (s *Standard) assigned(p *packages.Package, n *ast.AssignStmt) {
	for i, e := range n.Lhs {
		id, ok := ast.Unparen(e).(*ast.Ident)
		if v, isVar := p.TypesInfo.Uses[id].(*types.Var); ok && isVar && v.Parent() == p.Types.Scope() &&
			len(n.Lhs) == len(n.Rhs) {
			s.references(p, v, n.Rhs[i])
		}
	}
}

func (s *Standard) mark(o types.Object, sink Sink) {
	if sink == "" {
		return
	}
	if s.direct[o] == nil {
		s.direct[o] = map[Sink]bool{}
	}
	s.direct[o][sink] = true
}

// leaf returns what a function without a body does, which is written in assembly or in package runtime.
func leaf(o types.Object) Sink {
	name := o.Pkg().Path() + "." + o.Name()
	switch {
	case strings.Contains(strings.ToLower(o.Name()), "rand"):
		return Random
	case name == "time.now" || name == "time.runtimeNano" || name == "time.runtimeNow":
		return Clock
	case o.Pkg().Path() == "time" && strings.HasSuffix(o.Name(), "Timer"):
		return Timer
	case name == "time.Sleep":
		return Timer
	case strings.HasPrefix(o.Pkg().Path(), "internal/runtime/syscall"), o.Pkg().Path() == "syscall",
		o.Pkg().Path() == "os", o.Pkg().Path() == "internal/poll", o.Pkg().Path() == "os/signal",
		o.Pkg().Path() == "internal/syscall/unix":
		return Outside
	}
	return ""
}

// ends reports whether the walk does not follow an object, and which sink it is.
func ends(o types.Object) (Sink, bool) {
	switch Name(o) {
	case "os.Stdout", "os.Stderr":
		return Prints, true
	case "crypto/internal/sysrand.Read", "crypto/internal/fips140/drbg.Read":
		return Random, true
	// These look for a zone once, keep values for later, look whether a test runs, and print where a constant says so.
	case "time.Location.get", "sync.Pool.Get", "sync.Pool.Put", "unique.Make", "internal/lazyregexp.inTest",
		"net/mail.debugT.Printf":
		return "", true
	}
	return "", ownWork(o.Pkg().Path())
}

// ownWork reports whether the functions of a package do the run time's own work.
func ownWork(path string) bool {
	return path == "runtime" || path == "internal/godebug" || path == "internal/bisect" || path == "internal/sync" ||
		strings.HasPrefix(path, "internal/runtime/") && !strings.HasPrefix(path, "internal/runtime/syscall")
}

// Names returns the exported functions, variables and types of a package, and the methods of the types that the package
// declares, by the names of Name.
func Names(p *types.Package) []types.Object {
	var out []types.Object
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		out = append(out, o)
		tn, ok := o.(*types.TypeName)
		if !ok || tn.IsAlias() {
			continue
		}
		for _, m := range typeutil.IntuitiveMethodSet(tn.Type(), nil) {
			if m.Obj().Exported() && m.Obj().Pkg() == p {
				out = append(out, m.Obj())
			}
		}
	}
	return out
}

// Reaches returns for each sink that the object reaches a shortest path to it.
func (s *Standard) Reaches(o types.Object) map[Sink]string {
	type step struct {
		o    types.Object
		from int
	}
	if f, ok := o.(*types.Func); ok {
		o = f.Origin()
	}
	out := map[Sink]string{}
	seen := map[types.Object]bool{o: true}
	queue := []step{{o, -1}}
	for i := 0; i < len(queue); i++ {
		for sink := range s.direct[queue[i].o] {
			if out[sink] == "" {
				path := ""
				for j := i; j >= 0; j = queue[j].from {
					path = Name(queue[j].o) + " > " + path
				}
				out[sink] = strings.TrimSuffix(path, " > ")
			}
		}
		for _, to := range s.uses[queue[i].o] {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, step{to, i})
			}
		}
	}
	return out
}

// Name returns the name of an object with its package and, for a method, its receiver's type.
func Name(o types.Object) string {
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return o.Pkg().Path() + "." + o.Name()
	}
	t := types.Unalias(f.Signature().Recv().Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return o.Pkg().Path() + "." + n.Obj().Name() + "." + o.Name()
	}
	return o.Pkg().Path() + "." + o.Name()
}

package gate

import (
	"fmt"
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// WhyNotYaegi returns the first thing in the program that yaegi may not run, or "" if yaegi can run it. Every kind of
// node in a program must be in the tables of choose_plain.go and choose_loops.go. The differential tests of gate/yaegi
// cover what the tables allow; whatever is untested is not in them.
func WhyNotYaegi(p *Program) string {
	c := &chooser{info: p.Info, pkg: p.Pkg, rules: map[reflect.Type]rule{}, inTurn: map[*ast.CallExpr]bool{}}
	for _, r := range append(plain(), loops()...) {
		c.rules[r.kind] = r
	}
	for _, imp := range p.Pkg.Imports() {
		if !slices.Contains(allow.Interpreted(), allow.SeenPath(imp.Path())) {
			return "package " + imp.Path()
		}
	}
	if p.File.Name.Name != "tool" {
		return "another package name"
	}
	c.changing = changingFunctions(p.Info, p.File)
	for _, d := range p.File.Decls {
		c.fun = nil
		ast.Inspect(d, c.visit)
	}
	// Recursion is checked last because it needs the whole file.
	if c.why == "" && recursive(p.Info, p.File) {
		return "recursion" // its depth is unbounded
	}
	return c.why
}

// A chooser examines one program, node by node.
type chooser struct {
	info  *types.Info
	pkg   *types.Package
	rules map[reflect.Type]rule
	why   string // first reason against yaegi; "" if none yet

	fun types.Object          // declared function being examined; nil outside of one
	own map[types.Object]bool // its variables that hold only containers made in it

	changing map[types.Object]bool  // functions of the program that change elements of their arguments
	inTurn   map[*ast.CallExpr]bool // calls that are the only effect of their statement
}

// visit judges one node and reports whether to descend into it.
func (c *chooser) visit(n ast.Node) bool {
	if n == nil || c.why != "" {
		return false
	}
	if d, ok := n.(*ast.FuncDecl); ok {
		c.fun, c.own = c.info.Defs[d.Name], c.ownContainers(d)
	}
	c.takesTurn(n)
	c.why = c.judge(n)
	return c.why == ""
}

// judge returns why a node rules out yaegi, or "". Every expression must have a known type, and every kind of node a
// rule.
func (c *chooser) judge(n ast.Node) string {
	if e, ok := n.(ast.Expr); ok {
		if tv, known := c.info.Types[e]; known && !tv.IsBuiltin() && !c.knownType(tv.Type, 0) {
			return "type " + tv.Type.String()
		}
	}
	r, listed := c.rules[reflect.TypeOf(n)]
	if !listed {
		return strings.TrimPrefix(fmt.Sprintf("%T", n), "*ast.")
	}
	return r.judge(c, n)
}

// A rule judges the nodes of one kind.
type rule struct {
	kind  reflect.Type
	judge func(*chooser, ast.Node) string // why the node rules out yaegi, or ""
}

// A refusal is a use of a node kind that yaegi gets wrong.
type refusal[N ast.Node] struct {
	why   string
	found func(*chooser, N) bool
}

// no declares a refusal.
func no[N ast.Node](why string, found func(*chooser, N) bool) refusal[N] {
	return refusal[N]{why, found}
}

// runs returns the rule that yaegi runs nodes of kind N unless a refusal applies.
func runs[N ast.Node](refusals ...refusal[N]) rule {
	return rule{reflect.TypeFor[N](), func(c *chooser, n ast.Node) string {
		for _, r := range refusals {
			if r.found(c, n.(N)) {
				return r.why
			}
		}
		return ""
	}}
}

// knownType reports whether yaegi represents values of the type as the toolchain does. depth bounds the nesting of
// types.
func (c *chooser) knownType(t types.Type, depth int) bool {
	if depth > 4 {
		return false
	}
	known := func(parts ...types.Type) bool {
		return !slices.ContainsFunc(parts, func(t types.Type) bool { return !c.knownType(t, depth+1) })
	}
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return t.Info()&types.IsComplex == 0 && t.Kind() != types.Uintptr && t.Kind() != types.UnsafePointer
	case *types.Slice:
		return known(t.Elem())
	case *types.Map:
		return known(t.Key(), t.Elem())
	case *types.Pointer:
		_, named := t.Elem().(*types.Named)
		return named && known(t.Elem())
	case *types.Interface:
		return t.Empty()
	case *types.Named:
		return t.Obj().Pkg() != c.pkg
	case *types.Tuple:
		for v := range t.Variables() {
			if !known(v.Type()) {
				return false
			}
		}
		return true
	case *types.Signature:
		return known(t.Params(), t.Results())
	}
	return false
}

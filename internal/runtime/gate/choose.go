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

// WhyNotYaegi returns the first thing in the program that keeps it from yaegi; "" when yaegi runs it. Everything that a program is made of must be in the tables of
// choose_plain.go and choose_loops.go. What is there the differential tests of gate/yaegi prove; what nobody has tried is not there.
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
	if c.why == "" && recursive(p.Info, p.File) {
		return "recursion" // whose depth nothing bounds
	}
	return c.why
}

// A chooser looks at one program, node by node.
type chooser struct {
	info  *types.Info
	pkg   *types.Package
	rules map[reflect.Type]rule
	why   string // the first reason found against yaegi

	fun types.Object          // the declared function that is looked at, nil outside
	own map[types.Object]bool // its variables that hold nothing but containers made there

	changing map[types.Object]bool  // functions of the program that change what their arguments hold
	inTurn   map[*ast.CallExpr]bool // calls beside which a statement does nothing
}

// visit judges one node, and says whether to go on.
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

// A rule is what a table says of the nodes of one kind.
type rule struct {
	kind  reflect.Type
	judge func(*chooser, ast.Node) string // why a node keeps its program from yaegi; "" when it does not
}

// A refusal is what yaegi gets wrong about some nodes of a kind.
type refusal[N ast.Node] struct {
	why   string
	found func(*chooser, N) bool
}

func no[N ast.Node](why string, found func(*chooser, N) bool) refusal[N] {
	return refusal[N]{why, found}
}

// runs makes the rule that yaegi runs nodes of kind N, but for the refusals.
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

// knownType reports whether a type is one that yaegi represents as the toolchain does.
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

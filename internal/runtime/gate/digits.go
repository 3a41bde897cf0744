package gate

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/fix"
)

// GuardDigits changes the syntax tree so that no whole number beyond the precision of float64 is passed over or changed
// (see package rt): where the program takes a value for a float64 and knows no json.Number, and where it decodes JSON.
// named returns the expression for a function of package rt.
func (p *Program) GuardDigits(named func(function string) ast.Expr) {
	g := &digitGuard{info: p.Info, named: named, used: map[types.Object]bool{}}
	ast.Inspect(p.File, g.whole)
	if g.binds {
		ast.Inspect(p.File, g.uses)
	}
	for _, d := range p.File.Decls {
		g.knows = false
		ast.Inspect(d, g.knowsDigits)
		ast.Inspect(d, g.visit)
	}
}

type digitGuard struct {
	info    *types.Info
	named   func(function string) ast.Expr
	options bool                  // the program sets an option of a decoder
	binds   bool                  // the program calls Bind
	used    map[types.Object]bool // used elsewhere than in conditions and by big.NewFloat; set if the program binds
	knows   bool                  // the declaration names json.Number
}

// whole finds out what the program does anywhere.
func (g *digitGuard) whole(n ast.Node) bool {
	if s, ok := n.(*ast.SelectorExpr); ok {
		g.options = g.options || s.Sel.Name == "UseNumber" || s.Sel.Name == "DisallowUnknownFields"
		g.binds = g.binds || s.Sel.Name == "Bind"
	}
	return true
}

func (g *digitGuard) knowsDigits(n ast.Node) bool {
	id, ok := n.(*ast.Ident)
	g.knows = g.knows || ok && id.Name == "Number" && isFrom(g.info.Uses[id], "encoding/json")
	return true
}

// checks reports whether the program has the value of an argument as a float64 for checks alone, and its digits from
// Bind. ok is the variable of the assertion's second result.
func (g *digitGuard) checks(to, ok ast.Expr, n *ast.TypeAssertExpr) bool {
	id, named := to.(*ast.Ident)
	asked, _ := ok.(*ast.Ident)
	if !g.binds || !named || asked == nil || asked.Name == "_" || !isFloat64(g.info.TypeOf(n.Type)) ||
		!isArgument(n.X) {
		return false
	}
	obj := g.info.Defs[id]
	return obj != nil && !g.used[obj]
}

// uses fills used.
func (g *digitGuard) uses(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt: // all but the condition
		for _, part := range []ast.Stmt{n.Init, n.Body, n.Else} {
			if part != nil {
				ast.Inspect(part, g.uses)
			}
		}
		return false
	case *ast.CaseClause:
		for _, part := range n.Body {
			ast.Inspect(part, g.uses)
		}
		return false
	case *ast.CallExpr:
		s, is := ast.Unparen(n.Fun).(*ast.SelectorExpr)
		return !is || s.Sel.Name != "NewFloat" || !isFrom(g.info.Uses[s.Sel], "math/big")
	case *ast.Ident:
		if obj := g.info.Uses[n]; obj != nil {
			g.used[obj] = true
		}
	}
	return true
}

// isArgument reports whether x reads an argument of the call.
func isArgument(x ast.Expr) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		s, is := ast.Unparen(x.Fun).(*ast.SelectorExpr)
		return is && s.Sel.Name == "Arg"
	case *ast.IndexExpr:
		s, is := ast.Unparen(x.X).(*ast.SelectorExpr)
		return is && (s.Sel.Name == "Args" || s.Sel.Name == "Kwargs")
	}
	return false
}

// isFrom reports whether the object belongs to the package with that path.
func isFrom(obj types.Object, path string) bool {
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == path
}

// visit guards one node. Parents come first.
func (g *digitGuard) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if len(n.Lhs) == 2 && len(n.Rhs) == 1 {
			g.commaOK(n.Lhs[0], n.Lhs[1], n.Rhs[0])
		}
	case *ast.ValueSpec:
		if len(n.Names) == 2 && len(n.Values) == 1 {
			g.commaOK(n.Names[0], n.Names[1], n.Values[0])
		}
	case *ast.TypeSwitchStmt:
		g.typeSwitch(n)
	case *ast.CallExpr:
		g.format(n)
		g.decode(n)
	}
	return true
}

// commaOK guards an assertion that does not panic.
func (g *digitGuard) commaOK(to, ok, from ast.Expr) {
	n, asserts := ast.Unparen(from).(*ast.TypeAssertExpr)
	if !asserts {
		return
	}
	if g.checks(to, ok, n) {
		n.X = &ast.CallExpr{Fun: g.named("Checked"), Args: []ast.Expr{n.X}}
		return
	}
	id, named := to.(*ast.Ident)
	g.assertion(n, n.Type, named && id.Name == "_")
}

// typeSwitch guards the operand of a switch that has a case for float64.
func (g *digitGuard) typeSwitch(n *ast.TypeSwitchStmt) {
	var subject ast.Expr
	a, bound := n.Assign.(*ast.AssignStmt)
	if bound {
		subject = a.Rhs[0]
	} else {
		subject = n.Assign.(*ast.ExprStmt).X
	}
	for _, c := range n.Body.List {
		for _, t := range c.(*ast.CaseClause).List {
			if isFloat64(g.info.TypeOf(t)) {
				g.assertion(subject.(*ast.TypeAssertExpr), t, !bound)
				return
			}
		}
	}
}

func isFloat64(t types.Type) bool { return t != nil && types.Identical(t, types.Typ[types.Float64]) }

// assertion guards the operand of an assertion to float64, or to a type parameter, which may be one. kind is set if the
// program does not use the value.
func (g *digitGuard) assertion(n *ast.TypeAssertExpr, to ast.Expr, kind bool) {
	t := g.info.TypeOf(to)
	_, parameter := t.(*types.TypeParam)
	if g.knows || !g.isAny(n.X) || !parameter && !isFloat64(t) {
		return
	}
	f := g.named("Float")
	if parameter {
		f = &ast.IndexExpr{X: g.named("FloatAs"), Index: to}
	} else if kind {
		f = g.named("Kind")
	}
	n.X = &ast.CallExpr{Fun: f, Args: []ast.Expr{n.X}}
}

// isAny reports whether the type of x is an empty interface.
func (g *digitGuard) isAny(x ast.Expr) bool {
	t := g.info.TypeOf(x) // nil if the expression is guarded already
	if t == nil {
		return false
	}
	i, ok := t.Underlying().(*types.Interface)
	return ok && i.Empty()
}

// format guards the values that a call of package fmt formats as floating-point numbers.
func (g *digitGuard) format(n *ast.CallExpr) {
	s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || n.Ellipsis.IsValid() || !isFrom(g.info.Uses[s.Sel], "fmt") || !strings.HasSuffix(s.Sel.Name, "f") {
		return
	}
	for i, arg := range n.Args {
		if v := g.info.Types[arg].Value; v != nil && v.Kind() == constant.String {
			g.verbs(constant.StringVal(v), n.Args[i+1:])
			return
		}
	}
}

func (g *digitGuard) verbs(format string, args []ast.Expr) {
	if strings.ContainsAny(format, "*[") { // other positions
		return
	}
	at := 0
	for _, v := range fix.Verbs().FindAllStringSubmatch(format, -1) {
		if v[1] == "%" || at >= len(args) {
			continue
		}
		if g.isAny(args[at]) && strings.Contains("eEfFgG", v[1]) {
			args[at] = &ast.CallExpr{Fun: g.named("Float"), Args: []ast.Expr{args[at]}}
		}
		at++
	}
}

// decode replaces the method Decode of a json.Decoder.
func (g *digitGuard) decode(n *ast.CallExpr) {
	s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || g.options || s.Sel.Name != "Decode" {
		return
	}
	if t := g.info.TypeOf(s.X); t != nil && types.TypeString(t, nil) == "*encoding/json.Decoder" {
		n.Fun, n.Args = g.named("Decode"), append([]ast.Expr{s.X}, n.Args...)
	}
}

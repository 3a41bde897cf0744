package fix

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// operandAt returns the expression that an error is about: the outermost one that starts there and whose text is in the
// message.
func (m *fixer) operandAt(e types.Error, path []ast.Node) (out ast.Expr) {
	for _, n := range path {
		x, ok := n.(ast.Expr)
		if !ok || x.Pos() != e.Pos {
			continue
		}
		if strings.Contains(e.Msg, "cannot use "+types.ExprString(x)+" ") ||
			strings.Contains(e.Msg, types.ExprString(x)+" (") {
			out = x
		}
	}
	return out
}

// wanted returns the type that an expression must have at its place, or nil if that is not known.
func (m *fixer) wanted(x ast.Expr) types.Type {
	switch p := m.parents[x].(type) {
	case *ast.CallExpr:
		return m.parameterType(p, x)
	case *ast.AssignStmt:
		for i, r := range p.Rhs {
			if r == x && len(p.Lhs) == len(p.Rhs) {
				return m.Info.TypeOf(p.Lhs[i])
			}
		}
	case *ast.ValueSpec:
		return m.Info.TypeOf(p.Type)
	case *ast.ReturnStmt:
		t, _ := m.resultsOf(p)
		results := fieldsOf(t.Results)
		for i, r := range p.Results {
			if r == x && len(results) == len(p.Results) {
				return m.Info.TypeOf(results[i].typ)
			}
		}
	case *ast.IndexExpr:
		if t := m.Info.TypeOf(p.X); t != nil && p.Index == x {
			if mt, ok := t.Underlying().(*types.Map); ok {
				return mt.Key()
			}
		}
	case *ast.KeyValueExpr:
		return m.memberType(p, x)
	case *ast.CompositeLit:
		return m.elementType(p, x)
	case *ast.ParenExpr:
		return m.wanted(p)
	}
	return nil
}

// parameterType returns the type of the parameter that an argument is passed to.
func (m *fixer) parameterType(c *ast.CallExpr, x ast.Expr) types.Type {
	t := m.Info.TypeOf(c.Fun)
	if t == nil {
		return nil
	}
	// append is a built-in: the types of its parameters follow from its list.
	if isName(c.Fun, "append") && len(c.Args) > 0 && c.Args[0] != x {
		if c.Ellipsis.IsValid() {
			return m.Info.TypeOf(c.Args[0])
		}
		if s, ok := m.Info.TypeOf(c.Args[0]).(interface{ Elem() types.Type }); ok {
			return s.Elem()
		}
	}
	sig, ok := t.Underlying().(*types.Signature)
	if !ok {
		return nil
	}
	for i, a := range c.Args {
		if a != x {
			continue
		}
		last := sig.Params().Len() - 1
		switch {
		case sig.Variadic() && i >= last && c.Ellipsis.IsValid():
			return sig.Params().At(last).Type()
		case sig.Variadic() && i >= last:
			return sig.Params().At(last).Type().(*types.Slice).Elem()
		case i <= last:
			return sig.Params().At(i).Type()
		}
	}
	return nil
}

// elementType returns the type of an element without a key in a literal.
func (m *fixer) elementType(lit *ast.CompositeLit, x ast.Expr) types.Type {
	if m.Info.TypeOf(lit) == nil {
		return nil
	}
	switch t := m.Info.TypeOf(lit).Underlying().(type) {
	case *types.Slice:
		return t.Elem()
	case *types.Struct:
		if i := slices.Index(lit.Elts, x); i >= 0 && i < t.NumFields() {
			return t.Field(i).Type()
		}
	}
	return nil
}

// memberType returns the type of a value with a key in a literal.
func (m *fixer) memberType(kv *ast.KeyValueExpr, x ast.Expr) types.Type {
	lit, ok := m.parents[kv].(*ast.CompositeLit)
	if !ok || kv.Value != x || m.Info.TypeOf(lit) == nil {
		return nil
	}
	switch t := m.Info.TypeOf(lit).Underlying().(type) {
	case *types.Map:
		return t.Elem()
	case *types.Struct:
		for f := range t.Fields() {
			if isName(kv.Key, f.Name()) {
				return f.Type()
			}
		}
	}
	return nil
}

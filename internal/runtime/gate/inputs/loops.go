package inputs

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// around returns the ways into the body of a loop: one for each element of a literal list or map, or a single one with
// unknown variables for any other operand.
func (s *scan) around(loop *ast.RangeStmt, w *way) []*way {
	key, value := s.object(loop.Key), s.object(loop.Value)
	list, in, ok := s.elements(loop.X, w)
	if !ok {
		return []*way{{outer: w, site: w.site, from: w.from}}
	}
	var found *hit
	if s.stops(loop) {
		found = &hit{}
	}
	var out []*way
	for i, e := range list {
		k := binding{expr: &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(i)}, hit: found}
		if kv, keyed := e.(*ast.KeyValueExpr); keyed {
			k.expr, k.in, e = kv.Key, in, kv.Value
		}
		bound := map[types.Object]binding{}
		if len(s.set[key]) == 1 {
			bound[key] = k
		}
		if len(s.set[value]) == 1 {
			bound[value] = binding{expr: e, in: in, hit: found}
		}
		out = append(out, &way{bound: bound, outer: w, site: w.site, from: w.from})
	}
	return out
}

// elements returns the elements of a literal list or map, and the way in which they are to be read. ok is false for any
// other expression.
func (s *scan) elements(e ast.Expr, w *way) (list []ast.Expr, in *way, ok bool) {
	e, in, _ = s.resolve(e, w)
	lit, ok := e.(*ast.CompositeLit)
	if !ok || len(lit.Elts) > maxParameters {
		return nil, nil, false
	}
	isMap := false
	if t := s.info.TypeOf(lit); t != nil { // the synthetic list of variadic arguments has no type
		_, isMap = t.Underlying().(*types.Map)
	}
	for _, el := range lit.Elts {
		if _, keyed := el.(*ast.KeyValueExpr); keyed != isMap {
			return nil, nil, false
		}
	}
	return lit.Elts, in, true
}

// stops reports whether a loop may end early without a failure. It has then found what it looks for.
func (s *scan) stops(loop *ast.RangeStmt) bool {
	stops := false
	ast.Inspect(loop.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BranchStmt:
			stops = stops || n.Tok == token.BREAK && s.ended(n) == loop
		case *ast.ReturnStmt:
			stops = stops || !s.failing(n)
		}
		return true
	})
	return stops
}

// ended returns the loop or switch that an unlabeled break ends, or the loop that a continue continues.
func (s *scan) ended(b *ast.BranchStmt) ast.Node {
	for n := s.parents[b]; ; n = s.parents[n] {
		switch n.(type) {
		case nil, *ast.ForStmt, *ast.RangeStmt:
			return n
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			if b.Tok != token.CONTINUE {
				return n
			}
		}
	}
}

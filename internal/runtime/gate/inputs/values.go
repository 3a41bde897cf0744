package inputs

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// follow records the types that a value is converted to, or that it is used without a conversion.
func (s *scan) follow(r *read, e ast.Expr, w *way) {
	e, p := s.up(e)
	switch p := p.(type) {
	case *ast.TypeAssertExpr:
		s.asserted(r, p, false)
		return
	case *ast.CallExpr:
		if name := s.converts(p, e); name != "" {
			s.converted(r, p, name)
			return
		}
		if s.opens(p, e) {
			r.is(`{"type":"` + typeFile + `"}`)
			return
		}
		if to := s.parameter(p, e); to != nil && len(s.set[to]) == 0 {
			s.usesOf(r, to, w)
			return
		}
	case *ast.AssignStmt, *ast.ValueSpec:
		to, values := sides(p)
		i := slices.Index(values, e)
		if i < 0 || i >= len(to) || isBlank(to[i]) {
			return // the value is an index, or it is discarded
		}
		if v := s.object(to[i]); v != nil && s.holdsReads(v) {
			s.usesOf(r, v, w)
			return
		}
	case *ast.ReturnStmt:
		if len(p.Results) == 1 && w.site != nil {
			if !r.seen[w.site] {
				r.seen[w.site] = true
				s.follow(r, w.site, w.from)
			}
			return
		}
	case *ast.BinaryExpr:
		if isNil(s.info, p.X) || isNil(s.info, p.Y) {
			return
		}
	case *ast.ExprStmt:
		return
	}
	r.anything = true
}

// opens reports whether the call opens its first argument as a file.
func (s *scan) opens(call *ast.CallExpr, arg ast.Expr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && len(call.Args) > 0 && call.Args[0] == arg && isCall(s.info.TypeOf(sel.X)) &&
		slices.Contains([]string{"Open", "OpenText", "ReadFile", "FileInfo"}, sel.Sel.Name)
}

// usesOf follows all uses of a variable.
func (s *scan) usesOf(r *read, v types.Object, w *way) {
	for _, u := range s.uses[v] {
		if !r.seen[u] && !s.isTarget(u) {
			r.seen[u] = true
			s.follow(r, u, w)
		}
	}
}

// holdsReads reports whether a variable only ever holds arguments of the call and constants.
func (s *scan) holdsReads(v types.Object) bool {
	return !slices.ContainsFunc(s.set[v], func(e ast.Expr) bool {
		switch x := e.(type) {
		case nil:
			return true
		case *ast.IndexExpr:
			return false
		case *ast.CallExpr:
			sel, ok := x.Fun.(*ast.SelectorExpr)
			return !ok || !isCall(s.info.TypeOf(sel.X))
		}
		return s.info.Types[e].Value == nil && !isNil(s.info, e)
	})
}

// asserted records the types of an assertion or a type switch. as means that recurgent.As or a similar function has
// converted the value before.
func (s *scan) asserted(r *read, e *ast.TypeAssertExpr, as bool) {
	if e.Type != nil {
		s.kind(r, s.info.TypeOf(e.Type), as)
		return
	}
	p := s.parents[s.parents[e]]
	for _, c := range p.(*ast.TypeSwitchStmt).Body.List {
		clause := c.(*ast.CaseClause)
		if v := s.info.Implicits[clause]; clause.List == nil && len(s.uses[v]) > 0 {
			r.anything = true
		}
		for _, t := range clause.List {
			if !isNil(s.info, t) {
				s.kind(r, s.info.TypeOf(t), as)
			}
		}
	}
}

// kind records a type that a value is converted to. An assertion to a type that decoded JSON never has reveals nothing.
func (s *scan) kind(r *read, t types.Type, as bool) {
	of := jsonTypeOf(t)
	if as && !isNumber(t) {
		of = schemaOf(t, reads, 0)
	}
	switch {
	case of != nil:
		r.is(string(encoded(of)))
	case as || types.IsInterface(t):
		r.anything = true
	}
}

// converts returns the name of the host package's function that converts its first argument, or "".
func (s *scan) converts(call *ast.CallExpr, arg ast.Expr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 || call.Args[0] != arg {
		return ""
	}
	fn, ok := s.info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != allow.HostPath || fn.Signature().Recv() != nil ||
		!slices.Contains([]string{"As", "Must", "Maybe", "Or", "Held", "Case"}, fn.Name()) {
		return ""
	}
	return fn.Name()
}

// converted records what a conversion by the host package reveals.
func (s *scan) converted(r *read, call *ast.CallExpr, name string) {
	like := call.Args[1]
	if c := s.info.Types[like].Value; name == "Or" && c != nil {
		r.defaults(encodedConstant(c))
	}
	switch assert, ok := s.parents[call].(*ast.TypeAssertExpr); {
	case ok:
		s.asserted(r, assert, true)
	case name == "As" || name == "Case":
		r.anything = true
	default:
		s.kind(r, s.info.TypeOf(like), true)
	}
}

// isNil reports whether e is nil.
func isNil(info *types.Info, e ast.Expr) bool { return info.Types[e].IsNil() }

// encodedConstant returns a constant as JSON, or nil if JSON cannot represent it.
func encodedConstant(v constant.Value) []byte {
	switch v.Kind() {
	case constant.String:
		return encoded(constant.StringVal(v))
	case constant.Bool:
		return encoded(constant.BoolVal(v))
	case constant.Int, constant.Float:
		f, _ := constant.Float64Val(v)
		return encoded(f)
	}
	return nil
}

// encoded returns the JSON of our own plain data, which cannot fail.
func encoded(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}

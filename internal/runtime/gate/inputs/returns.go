package inputs

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/types"
)

// maxReturns is the number of different kinds of values that a program may return before nothing is claimed.
const maxReturns = 4

// returns returns a schema of the values that Run returns, or nil unless every return statement shows its value.
func (s *scan) returns(run *ast.FuncDecl) []byte {
	all, known := &read{}, true
	ast.Inspect(run.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) == 2 && isNil(s.info, n.Results[0]) && !isNil(s.info, n.Results[1]) {
				return true // an error
			}
			var of map[string]any
			if len(n.Results) == 2 {
				of = s.valueOf(n.Results[0], 0)
			}
			known = known && of != nil
			all.is(string(encoded(of)))
		}
		return true
	})
	if !known || len(all.kinds) == 0 || len(all.kinds) > maxReturns {
		return nil
	}
	if len(all.kinds) == 1 {
		return []byte(all.kinds[0])
	}
	plain := &read{} // such as objects with different members, or numbers and null
	for _, kind := range all.kinds {
		var of struct{ Type any }
		_ = json.Unmarshal([]byte(kind), &of)
		names, several := of.Type.([]any)
		if !several {
			names = []any{of.Type}
		}
		for _, name := range names {
			plain.is(name.(string))
		}
	}
	if len(plain.kinds) == 1 {
		return encoded(map[string]any{"type": plain.kinds[0]})
	}
	return encoded(map[string]any{"type": plain.kinds})
}

// valueOf returns a schema of the JSON of an expression's value, or nil if it is not known.
func (s *scan) valueOf(e ast.Expr, depth int) map[string]any {
	e = ast.Unparen(e)
	if isNil(s.info, e) {
		return map[string]any{"type": "null"}
	}
	if u, ok := e.(*ast.UnaryExpr); ok {
		if lit, ok := u.X.(*ast.CompositeLit); ok {
			e = lit
		}
	}
	t := s.info.TypeOf(e)
	out := schemaOf(t, writes, depth)
	lit, ok := e.(*ast.CompositeLit)
	if !ok || out == nil {
		return out
	}
	switch u := t.Underlying().(type) {
	case *types.Slice: // a literal is not nil
		out["type"] = "array"
	case *types.Map:
		if out["type"] = "object"; isAny(u.Elem()) {
			return s.members(lit, depth)
		}
	}
	return out
}

// members returns a schema of a map[string]any literal. The program may add more members later.
func (s *scan) members(lit *ast.CompositeLit, depth int) map[string]any {
	properties := map[string]any{}
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key := s.info.Types[kv.Key].Value
		if key == nil || key.Kind() != constant.String || len(properties) >= maxMembers {
			continue
		}
		of := map[string]any{}
		if depth < maxNesting {
			if known := s.valueOf(kv.Value, depth+1); known != nil {
				of = known
			}
		}
		properties[constant.StringVal(key)] = of
	}
	return object(properties)
}

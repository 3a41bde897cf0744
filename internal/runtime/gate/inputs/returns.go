package inputs

import (
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// returns describes the values that Run returns, where each return statement shows it; nil otherwise.
func (f *finder) returns(run *ast.FuncDecl) []byte {
	var all []map[string]any
	known := true
	ast.Inspect(run.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) != 2 {
				known = false
				return true
			}
			if isNil(f.info, n.Results[0]) && !isNil(f.info, n.Results[1]) {
				return true // an error
			}
			s := f.valueOf(n.Results[0], 0)
			if s == nil {
				known = false
			} else if !slices.ContainsFunc(all, func(o map[string]any) bool { return string(encoded(o)) == string(encoded(s)) }) {
				all = append(all, s)
			}
		}
		return true
	})
	if !known || len(all) == 0 || len(all) > 4 {
		return nil
	}
	if len(all) == 1 {
		return encoded(all[0])
	}
	var types []string // objects with different members, numbers and null ...
	for _, s := range all {
		switch t := s["type"].(type) {
		case string:
			types = appendNew(types, t)
		case []string:
			for _, one := range t {
				types = appendNew(types, one)
			}
		default:
			return nil
		}
	}
	if len(types) == 1 {
		return encoded(map[string]any{"type": types[0]})
	}
	return encoded(map[string]any{"type": types})
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// valueOf describes the JSON of an expression's value.
func (f *finder) valueOf(e ast.Expr, depth int) map[string]any {
	e = ast.Unparen(e)
	if isNil(f.info, e) {
		return map[string]any{"type": "null"}
	}
	if u, ok := e.(*ast.UnaryExpr); ok {
		if lit, ok := u.X.(*ast.CompositeLit); ok {
			e = lit
		}
	}
	if lit, ok := e.(*ast.CompositeLit); ok {
		return f.literal(lit, depth)
	}
	if c := f.info.Types[e].Value; c != nil && c.Kind() == constant.Unknown {
		return nil
	}
	return written(f.info.TypeOf(e), depth)
}

// literal describes a list or a map that is written out.
func (f *finder) literal(lit *ast.CompositeLit, depth int) map[string]any {
	t := f.info.TypeOf(lit)
	if t == nil || encodesItself(t) {
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		if out := written(t, depth); out != nil {
			out["type"] = "array" // it is not nil
			return out
		}
	case *types.Map:
		if !isAny(u.Elem()) {
			if out := written(t, depth); out != nil {
				out["type"] = "object"
				return out
			}
			return nil
		}
		return f.members(lit, depth)
	}
	return written(t, depth)
}

// members describes a map[string]any that is written out. More may be added to it later.
func (f *finder) members(lit *ast.CompositeLit, depth int) map[string]any {
	properties := map[string]any{}
	for _, el := range lit.Elts {
		kv, ok := el.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key := f.info.Types[kv.Key].Value
		if key == nil || key.Kind() != constant.String || len(properties) >= 32 {
			continue
		}
		var of map[string]any
		if depth < maxNesting {
			of = f.valueOf(kv.Value, depth+1)
		}
		if of == nil {
			of = map[string]any{}
		}
		properties[constant.StringVal(key)] = of
	}
	out := map[string]any{"type": "object"}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	return out
}

// written describes what encoding/json makes of values of the type; nil where that depends on the value.
func written(t types.Type, depth int) map[string]any {
	if t == nil || depth > maxNesting || encodesItself(t) {
		return nil
	}
	if _, generic := types.Unalias(t).(*types.TypeParam); generic {
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		out := schemaOf(t, depth)
		if out["type"] == "integer" && u.Kind() == types.Uintptr {
			return nil
		}
		return out
	case *types.Slice:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 {
			return map[string]any{"type": []string{"string", "null"}}
		}
		return withItems([]string{"array", "null"}, u.Elem(), depth)
	case *types.Array:
		return withItems("array", u.Elem(), depth)
	case *types.Map:
		return map[string]any{"type": []string{"object", "null"}}
	case *types.Struct:
		return fields(u, depth)
	}
	return nil
}

// fields describes what encoding/json makes of a struct.
func fields(s *types.Struct, depth int) map[string]any {
	properties := map[string]any{}
	for i := range s.NumFields() {
		if s.Field(i).Embedded() {
			return map[string]any{"type": "object"}
		}
		name, ok := fieldName(s, i)
		if !ok || len(properties) >= 32 {
			continue
		}
		of := map[string]any{}
		if tag := reflect.StructTag(s.Tag(i)).Get("json"); !strings.HasSuffix(tag, ",string") {
			if w := written(s.Field(i).Type(), depth+1); w != nil {
				of = w
			}
		}
		properties[name] = of
	}
	out := map[string]any{"type": "object"}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	return out
}

func withItems(kind any, elem types.Type, depth int) map[string]any {
	out := map[string]any{"type": kind}
	if items := written(elem, depth+1); items != nil {
		out["items"] = items
	}
	return out
}

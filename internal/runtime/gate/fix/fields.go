package fix

import (
	"fmt"
	"go/ast"
	"go/types"
)

// hiddenFields names fields of structs that JSON is decoded into and that it never fills: encoding/json does not see names in small letters.
func (m *fixer) hiddenFields() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return true
		}
		s, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || !m.decodes(s) {
			return true
		}
		p, ok := m.Info.TypeOf(c.Args[len(c.Args)-1]).(*types.Pointer)
		if !ok {
			return true
		}
		if f := m.hiddenField(p.Elem(), map[types.Type]bool{}); f != nil {
			m.name(c, fmt.Sprintf("the field %s is never filled: JSON fills fields that begin with a capital letter: %s %s `json:%q`", f.Name(), title(f.Name()), m.typeText(f.Type()), f.Name()))
		}
		return true
	})
}

// decodes reports whether a function fills its last argument with JSON.
func (m *fixer) decodes(s *ast.SelectorExpr) bool {
	f, ok := m.Info.Uses[s.Sel].(*types.Func)
	return ok && (ofHost(f) && f.Name() == "Bind" || f.Pkg() != nil && f.Pkg().Path() == "encoding/json" && (f.Name() == "Unmarshal" || f.Name() == "Decode"))
}

// hiddenField returns a field of a struct of the program, or of one in it, that has none but in small letters, and that the program only reads.
func (m *fixer) hiddenField(t types.Type, seen map[types.Type]bool) *types.Var {
	methods := types.NewMethodSet(types.NewPointer(t))
	if seen[t] || methods.Lookup(nil, "UnmarshalJSON") != nil || methods.Lookup(nil, "UnmarshalText") != nil {
		return nil
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return m.hiddenField(u.Elem(), seen)
	case *types.Map:
		return m.hiddenField(u.Elem(), seen)
	case *types.Pointer:
		return m.hiddenField(u.Elem(), seen)
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				return nil
			}
		}
		for f := range u.Fields() {
			if f.Pkg() == m.Pkg && !f.Embedded() && f.Name() != "_" && m.onlySelected(f) {
				return f
			}
		}
	}
	return nil
}

// onlySelected reports whether the program reads a field, and never sets it.
func (m *fixer) onlySelected(f *types.Var) bool {
	uses := m.usesOf(f)
	for _, id := range uses {
		s, ok := m.parents[id].(*ast.SelectorExpr)
		if !ok || m.isSet(s) {
			return false
		}
	}
	return len(uses) > 0
}

// title is a name with a capital letter.
func title(name string) string {
	if name[0] >= 'a' && name[0] <= 'z' {
		return string(name[0]-'a'+'A') + name[1:]
	}
	return "X" + name
}

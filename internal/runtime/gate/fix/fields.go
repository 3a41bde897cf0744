package fix

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// hiddenFields reports struct fields that JSON is decoded into but never fills, because they are unexported.
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
		if f := m.hiddenField(p.Elem(), map[types.Type]bool{}); f != nil && !m.exportedField(f) {
			m.name(c, fmt.Sprintf("the field %s is never filled: JSON fills fields that begin with a capital letter: %s %s `json:%q`", f.Name(), title(f.Name()), m.typeText(f.Type()), f.Name()))
		}
		return true
	})
}

// decodes reports whether a function decodes JSON into its last argument.
func (m *fixer) decodes(s *ast.SelectorExpr) bool {
	f, ok := m.Info.Uses[s.Sel].(*types.Func)
	return ok && (ofHost(f) && f.Name() == "Bind" || f.Pkg() != nil && f.Pkg().Path() == "encoding/json" &&
		(f.Name() == "Unmarshal" || f.Name() == "Decode"))
}

// hiddenField returns a field that the program reads but never sets, in a struct without exported fields. It looks into
// nested types, and returns nil if there is none.
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
				return m.hiddenWithin(u, seen)
			}
		}
		if m.hasLiteral(t) {
			return nil
		}
		for f := range u.Fields() {
			if f.Pkg() == m.Pkg && !f.Embedded() && f.Name() != "_" && m.onlySelected(f) {
				return f
			}
		}
	}
	return nil
}

// hiddenWithin is hiddenField of what the exported fields of a struct hold.
func (m *fixer) hiddenWithin(u *types.Struct, seen map[types.Type]bool) *types.Var {
	for f := range u.Fields() {
		if !f.Exported() {
			continue
		}
		if hidden := m.hiddenField(f.Type(), seen); hidden != nil {
			return hidden
		}
	}
	return nil
}

// hasLiteral reports whether the program makes values of a struct whose fields are given.
func (m *fixer) hasLiteral(t types.Type) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		found = found || ok && len(lit.Elts) > 0 && m.Info.TypeOf(lit) != nil && types.Identical(m.Info.TypeOf(lit), t)
		return !found
	})
	return found
}

// onlySelected reports whether the program reads a field and never sets it.
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

// title returns the exported form of a field name.
func title(name string) string {
	if name[0] >= 'a' && name[0] <= 'z' {
		return string(name[0]-'a'+'A') + name[1:]
	}
	return "X" + name
}

// field returns the origin of a field of one of the program's structs: the origins of the struct and of everything the
// field is set to.
func (t *tracer) field(e *ast.SelectorExpr) origin {
	v := t.variable(e.Sel)
	if v == nil || !v.IsField() || v.Pkg() != t.Pkg || v.Embedded() || v.Origin() != v {
		return ofProgram
	}
	// The struct may come from JSON as a whole, whatever the program sets in it later.
	from := t.from(e.X)
	if t.seen[v] {
		return from
	}
	t.seen[v] = true
	for _, id := range t.usesOf(v) {
		switch p := t.parents[id].(type) {
		case *ast.KeyValueExpr:
			from |= t.value(p.Value)
		case *ast.SelectorExpr:
			from |= t.setAt(p)
		}
	}
	ast.Inspect(t.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok && len(lit.Elts) > 0 && t.isPositional(lit, v) {
			from |= ofProgram
		}
		return true
	})
	return from
}

// setAt returns the origin of the value that a field, or an element of it, is set to at this place, or 0 if it is not
// set here.
func (t *tracer) setAt(x ast.Expr) (from origin) {
	switch p := t.parents[x].(type) {
	case *ast.IndexExpr:
		if p.X == x && t.isSet(p) {
			return t.setAt(p)
		}
	case *ast.AssignStmt:
		if i := slices.Index(p.Lhs, x); i >= 0 && len(p.Lhs) == len(p.Rhs) {
			return t.value(p.Rhs[i])
		} else if i >= 0 {
			return ofProgram
		}
	case *ast.UnaryExpr, *ast.IncDecStmt, *ast.RangeStmt:
		if t.isSet(x) {
			return ofProgram
		}
	}
	return 0
}

// isPositional reports whether a literal without field names sets the field.
func (t *tracer) isPositional(lit *ast.CompositeLit, field *types.Var) bool {
	if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); keyed || t.Info.TypeOf(lit) == nil {
		return false
	}
	s, ok := t.Info.TypeOf(lit).Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if f == field {
			return true
		}
	}
	return false
}

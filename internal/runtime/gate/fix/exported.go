package fix

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// shownFields exports the fields of structs that Run returns, and adds tags with their old names, if all fields of a
// struct are unexported. JSON shows none of those.
func (m *fixer) shownFields() {
	m.returned(func(x ast.Expr) {
		if t := m.Info.TypeOf(x); t != nil {
			m.show(t, map[types.Type]bool{})
		}
	})
}

// show exports the fields of the structs within a type.
func (m *fixer) show(t types.Type, seen map[types.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case *types.Slice:
		m.show(u.Elem(), seen)
	case *types.Map:
		m.show(u.Elem(), seen)
	case *types.Pointer:
		m.show(u.Elem(), seen)
	case *types.Struct:
		methods := types.NewMethodSet(types.NewPointer(t))
		if methods.Lookup(nil, "MarshalJSON") == nil && methods.Lookup(nil, "MarshalText") == nil && m.export(t, u) {
			return
		}
		for f := range u.Fields() {
			m.show(f.Type(), seen)
		}
	}
}

// export exports the fields of one of the program's structs. A field without a tag gets one: the name that the
// deliverable requires, or else the old name.
func (m *fixer) export(t types.Type, u *types.Struct) bool {
	name, ok := m.definedType(t)
	if !ok || u.NumFields() == 0 {
		return false
	}
	return m.exportFields(t, u, m.structOf(name), m.keyOf)
}

// exportedField exports the fields of a struct that JSON is decoded into and of which it fills none.
func (m *fixer) exportedField(f *types.Var) bool {
	var st *ast.StructType
	ast.Inspect(m.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok && slices.ContainsFunc(s.Fields.List, func(l *ast.Field) bool {
			return slices.ContainsFunc(l.Names, func(id *ast.Ident) bool { return m.Info.Defs[id] == f })
		}) {
			st = s
		}
		return st == nil
	})
	if st == nil {
		return false
	}
	var t types.Type
	if spec, named := m.parents[st].(*ast.TypeSpec); named {
		t = m.Info.Defs[spec.Name].Type()
	} else {
		t = m.Info.TypeOf(st)
	}
	u, ok := t.Underlying().(*types.Struct)
	return ok && m.exportFields(t, u, st, m.decodedKey)
}

// decodedKey returns the key that an unexported field is filled from, or "" if it is not certain: userName may be
// user_name.
func (m *fixer) decodedKey(name string) string {
	if strings.ToLower(name) != name {
		return ""
	}
	return name
}

// exportFields exports the fields of the struct, which has no exported one. keyOf returns the keys of those without a
// tag.
func (m *fixer) exportFields(t types.Type, u *types.Struct, st *ast.StructType, keyOf func(string) string) bool {
	for f := range u.Fields() {
		// A struct with an exported field already shows what its author wants to show.
		if f.Exported() || f.Embedded() || f.Name() == "_" {
			return false
		}
		if obj, _, _ := types.LookupFieldOrMethod(t, true, m.Pkg, title(f.Name())); obj != nil {
			return false
		}
	}
	if st == nil {
		return false
	}
	var edits []edit
	for _, f := range st.Fields.List {
		if f.Tag == nil && slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return keyOf(id.Name) == "" }) {
			return false
		}
		switch {
		case len(f.Names) == 0, f.Tag != nil && (len(f.Names) > 1 || !strings.HasPrefix(f.Tag.Value, "`json:\"")):
			return false
		case len(f.Names) > 1:
			var lines []string
			for _, id := range f.Names {
				lines = append(lines, fmt.Sprintf("%s %s `json:%q`", title(id.Name), m.text(f.Type), keyOf(id.Name)))
			}
			edits = append(edits, m.replace(f, strings.Join(lines, "\n")))
		case f.Tag == nil:
			edits = append(edits, m.after(f, fmt.Sprintf(" `json:%q`", keyOf(f.Names[0].Name))))
		}
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && len(f.Names) > 1 && m.parents[m.parents[f]] == ast.Node(st) {
			return false
		}
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := m.Info.ObjectOf(id).(*types.Var); ok && v.IsField() && slices.Contains(fieldsOfStruct(u), v) {
				edits = append(edits, m.replace(id, title(id.Name)))
			}
		}
		return true
	})
	return m.fix("JSON shows fields that begin with a capital letter", edits...)
}

// fieldsOfStruct returns the fields of a struct.
func fieldsOfStruct(u *types.Struct) []*types.Var { return slices.Collect(u.Fields()) }

// keyOf returns the member that the deliverable requires under a name, ignoring case and underscores, or the name
// itself.
func (m *fixer) keyOf(name string) string {
	for _, key := range m.terms.Required {
		if strings.EqualFold(strings.ReplaceAll(key, "_", ""), strings.ReplaceAll(name, "_", "")) {
			return key
		}
	}
	return name
}

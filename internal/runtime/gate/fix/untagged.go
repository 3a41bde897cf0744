package fix

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// untagged gives the fields of structs that Run returns the keys that the purpose lists for them. JSON would show them
// as Go spells them. It reports a field that the purpose spells otherwise where it does not list all of a struct.
func (m *fixer) untagged() {
	if len(m.terms.Words) == 0 {
		return
	}
	m.returned(func(x ast.Expr) {
		m.untaggedIn(x, m.Info.TypeOf(x), map[types.Type]bool{})
		if object, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
			for _, el := range object.Elts {
				if kv, ok := el.(*ast.KeyValueExpr); ok {
					el = kv.Value
				}
				m.untaggedIn(el, m.Info.TypeOf(el), map[types.Type]bool{})
			}
		}
	})
}

// untaggedIn looks at the structs of the program within the type of an expression.
func (m *fixer) untaggedIn(x ast.Expr, t types.Type, seen map[types.Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	switch u := t.Underlying().(type) {
	case interface{ Elem() types.Type }:
		m.untaggedIn(x, u.Elem(), seen)
	case *types.Struct:
		methods := types.NewMethodSet(types.NewPointer(t))
		if n, ok := types.Unalias(t).(*types.Named); ok && n.Obj().Pkg() != m.Pkg ||
			methods.Lookup(nil, "MarshalJSON") != nil || methods.Lookup(nil, "MarshalText") != nil {
			return
		}
		m.untaggedStruct(x, t, u)
		for f := range u.Fields() {
			m.untaggedIn(x, f.Type(), seen)
		}
	}
}

// untaggedStruct tags the fields of one struct, or reports the first that the purpose spells otherwise.
func (m *fixer) untaggedStruct(x ast.Expr, t types.Type, u *types.Struct) {
	names, listed := map[string]string{}, true
	var first *types.Var
	for i := range u.NumFields() {
		f := u.Field(i)
		if reflect.StructTag(u.Tag(i)).Get("json") != "" || !f.Exported() || f.Embedded() {
			continue
		}
		names[f.Name()] = spelled(f.Name(), m.terms.Keys)
		listed = listed && names[f.Name()] != "" && u.Tag(i) == ""
		if first == nil && spelled(f.Name(), m.terms.Words) != "" {
			first = f
		}
	}
	if first == nil {
		return
	}
	if name, ok := m.definedType(t); ok && listed {
		if st := m.structOf(name); st != nil {
			m.tag(st, names)
			return
		}
	}
	m.name(x, "JSON shows the field "+first.Name()+" as "+first.Name()+
		": give each field the key that the purpose names: "+first.Name()+" "+m.typeText(first.Type())+" `json:\""+
		spelled(first.Name(), m.terms.Words)+"\"`")
}

// spelled returns the word that is the name of a field apart from case and underscores, or "" if there is none or the
// name itself is among the words.
func spelled(name string, words []string) string {
	if slices.Contains(words, name) {
		return ""
	}
	i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(strings.ReplaceAll(w, "_", ""), name) })
	if i < 0 {
		return ""
	}
	return words[i]
}

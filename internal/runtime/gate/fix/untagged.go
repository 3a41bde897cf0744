package fix

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// untagged gives the fields of structs that Run returns the keys that the purpose lists for them. JSON would show them
// as Go spells them. It leaves a struct alone unless the purpose lists all of its fields, and all structs if the
// deliverable requires other keys.
func (m *fixer) untagged() {
	if len(m.terms.Keys) == 0 || slices.ContainsFunc(m.terms.Required,
		func(key string) bool { return !slices.Contains(m.terms.Keys, key) }) {
		return
	}
	m.returned(func(x ast.Expr) {
		m.untaggedIn(x, m.Info.TypeOf(x), map[types.Type]bool{})
		if object, ok := ast.Unparen(x).(*ast.CompositeLit); ok && !isStruct(m.Info.TypeOf(x)) {
			for _, el := range object.Elts {
				if kv, ok := el.(*ast.KeyValueExpr); ok {
					el = kv.Value
				}
				m.untaggedIn(el, m.Info.TypeOf(el), map[types.Type]bool{})
			}
		}
	})
}

// untaggedIn looks at the structs of the program that JSON shows within the type of an expression.
func (m *fixer) untaggedIn(x ast.Expr, t types.Type, seen map[types.Type]bool) {
	if t == nil || seen[t] || m.checker.Spent() {
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
		if names := untaggedFields(u, m.terms.Keys); len(names) > 0 && !m.usesKeys(t) {
			m.untaggedStruct(x, t, names)
		}
		for i := range u.NumFields() {
			if isShown(u, i) {
				m.untaggedIn(x, u.Field(i).Type(), seen)
			}
		}
	}
}

func isStruct(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// isShown reports whether JSON shows a field of a struct.
func isShown(u *types.Struct, i int) bool {
	return (u.Field(i).Exported() || u.Field(i).Embedded()) && reflect.StructTag(u.Tag(i)).Get("json") != "-"
}

// untaggedFields returns the keys of the fields without tags. It returns nil if JSON shows a field that is not listed
// otherwise, or two with one key.
func untaggedFields(u *types.Struct, listed []string) map[string]string {
	names, keys := map[string]string{}, map[string]bool{}
	for i := range u.NumFields() {
		if !isShown(u, i) {
			continue
		}
		f := u.Field(i)
		key, _, _ := strings.Cut(reflect.StructTag(u.Tag(i)).Get("json"), ",")
		if u.Tag(i) == "" {
			key = spelled(f.Name(), listed)
			names[f.Name()] = key
		}
		if f.Embedded() || keys[key] || !slices.Contains(listed, key) {
			return nil
		}
		keys[key] = true
	}
	return names
}

// untaggedStruct tags the fields of a struct that has a name, and reports any other.
func (m *fixer) untaggedStruct(x ast.Expr, t types.Type, names map[string]string) {
	if name, ok := m.definedType(t); ok {
		if st := m.structOf(name); st != nil {
			m.tag(st, names)
		}
		return
	}
	u := t.Underlying().(*types.Struct)
	for f := range u.Fields() {
		if key := names[f.Name()]; key != "" {
			m.name(x, "JSON shows the field "+f.Name()+" as "+f.Name()+
				": give each field the key that the purpose names: "+f.Name()+" "+m.typeText(f.Type())+
				" `json:\""+key+"\"`")
			return
		}
	}
}

// coding matches functions that read values from JSON or write them.
var coding = lazy.Regexp(`^(?:Bind|Unmarshal|Marshal|Decode|Encode)`)

// usesKeys reports whether the program may read values of a type from JSON, or show them to others than the caller.
// Tags would change the keys there, too.
func (m *fixer) usesKeys(t types.Type) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || found {
			return !found
		}
		owner, name := m.hostMember(s)
		if !coding().MatchString(s.Sel.Name) && owner != "Call" {
			return true
		}
		c, called := m.parents[s].(*ast.CallExpr)
		if !called || c.Fun != s {
			found = owner != "Call" || name == "Context"
			return !found
		}
		for _, a := range c.Args {
			found = found || !m.isPlainJSON(s, a) && mayHold(m.Info.TypeOf(a), t, map[types.Type]bool{})
		}
		return !found
	})
	return found
}

// plainJSON matches the types of objects and lists that JSON fills with values of no type of the program.
var plainJSON = lazy.Regexp(`^\*(?:\[\])?(?:map\[string\]any|\[\]any)$`)

// isPlainJSON reports whether JSON is read into an object or a list without a type of the program.
func (m *fixer) isPlainJSON(s *ast.SelectorExpr, into ast.Expr) bool {
	name := s.Sel.Name
	t := m.Info.TypeOf(into)
	return t != nil && !strings.HasPrefix(name, "Marshal") && !strings.HasPrefix(name, "Encode") &&
		plainJSON().MatchString(types.TypeString(t, nil))
}

// mayHold reports whether a value of the type of may contain one of the type t.
func mayHold(of, t types.Type, seen map[types.Type]bool) bool {
	if of == nil || types.Identical(of, t) {
		return true
	}
	if seen[of] {
		return false
	}
	seen[of] = true
	switch u := of.Underlying().(type) {
	case *types.Interface:
		return true
	case interface{ Elem() types.Type }:
		return mayHold(u.Elem(), t, seen)
	case *types.Struct:
		for f := range u.Fields() {
			if mayHold(f.Type(), t, seen) {
				return true
			}
		}
	}
	return false
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

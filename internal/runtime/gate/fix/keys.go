package fix

import (
	"go/ast"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// keys adds tags to a struct that Run returns if its field names match the names that the deliverable requires except
// for case and underscores.
func (m *fixer) keys() {
	m.returned(func(x ast.Expr) {
		t := m.Info.TypeOf(x)
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		n, ok := t.(*types.Named)
		if !ok || n.Obj().Pkg() != m.Pkg || len(m.terms.Required) == 0 {
			return
		}
		st := m.structOf(n.Obj())
		if st == nil {
			return
		}
		names := map[string]string{}
		for _, f := range st.Fields.List {
			for _, id := range f.Names {
				i := slices.IndexFunc(m.terms.Required,
					func(key string) bool { return strings.EqualFold(strings.ReplaceAll(key, "_", ""), id.Name) })
				if i >= 0 && f.Tag == nil && id.IsExported() && id.Name != m.terms.Required[i] {
					names[id.Name] = m.terms.Required[i]
				}
			}
		}
		// All required names must match. Otherwise the struct may be meant for something else.
		if len(names) == len(m.terms.Required) {
			m.tag(st, names)
		}
	})
}

// tag adds JSON tags to fields.
func (m *fixer) tag(st *ast.StructType, names map[string]string) {
	var edits []edit
	for _, f := range st.Fields.List {
		var lines []string
		for _, id := range f.Names {
			line := id.Name + " " + m.text(f.Type)
			if names[id.Name] != "" {
				line += " `json:" + strconv.Quote(names[id.Name]) + "`"
			}
			lines = append(lines, line)
		}
		if slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return names[id.Name] != "" }) {
			edits = append(edits, m.replace(f, strings.Join(lines, "\n")))
		}
	}
	m.fix("the fields have the names that JSON is to have", edits...)
}

// structOf returns the struct type that a type of the program is declared as, or nil.
func (m *fixer) structOf(of types.Object) (out *ast.StructType) {
	ast.Inspect(m.file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && m.Info.Defs[spec.Name] == of {
			out, _ = spec.Type.(*ast.StructType)
		}
		return out == nil
	})
	return out
}

// sharedTags repairs or reports several fields with one tag, as in X, Y float64 `json:"x,y"`. JSON fills none of
// several fields with the same name.
func (m *fixer) sharedTags() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		st, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range st.Fields.List {
			if len(f.Names) < 2 || f.Tag == nil {
				continue
			}
			text, _ := strconv.Unquote(f.Tag.Value)
			keys := strings.Split(reflect.StructTag(text).Get("json"), ",")
			names := map[string]string{}
			for i, id := range f.Names {
				if len(keys) == len(f.Names) && strings.EqualFold(strings.ReplaceAll(keys[i], "_", ""), id.Name) {
					names[id.Name] = keys[i]
				}
			}
			if len(names) == len(f.Names) {
				m.tag(&ast.StructType{Fields: &ast.FieldList{List: []*ast.Field{f}}}, names)
			} else if keys[0] != "" && keys[0] != "-" && (uses(m.file, "Bind") || uses(m.file, "Unmarshal")) {
				m.name(f, "several fields have one name of JSON, "+keys[0]+
					", so that none is filled: give each a line and a tag of its own")
			}
		}
		return true
	})
}

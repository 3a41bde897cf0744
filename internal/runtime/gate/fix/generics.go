package fix

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// bareParameters matches type parameters without constraints.
var bareParameters = lazy.Regexp(`^([ \t]*(?:type|func)[ \t]+[\pL_][\pL\d_]*\[)([A-Z]\w*(?:[ \t]*,[ \t]*[A-Z]\w*)*)\]`)

// unconstrained gives the type parameters of a declaration a constraint.
func (m *fixer) unconstrained(e *scanner.Error) bool {
	line, begin := m.lineAt(e)
	g := bareParameters().FindStringSubmatchIndex(line)
	if g == nil || !strings.HasPrefix(e.Msg, "missing type constraint") {
		return false
	}
	names := strings.Split(line[g[4]:g[5]], ",")
	for i, n := range names {
		n = strings.TrimSpace(n)
		names[i] = n + " any"
		if strings.Contains(m.src, "map["+n+"]") {
			names[i] = n + " comparable"
		}
	}
	return m.fix("type parameters have a constraint", edit{begin + g[4], begin + g[5], strings.Join(names, ", ")})
}

// parameterOfArray repairs type Stack[T] struct, which Go reads as an array.
func (m *fixer) parameterOfArray(_ types.Error, path []ast.Node, _ []string) bool {
	id, ok := path[0].(*ast.Ident)
	if !ok {
		return false
	}
	a, ok := m.parents[id].(*ast.ArrayType)
	spec, declared := m.parents[a].(*ast.TypeSpec)
	return ok && declared && a.Len == ast.Expr(id) && m.offset(a.Pos()) == m.offset(spec.Name.End()) &&
		m.fix("type parameters have a constraint", m.after(id, " any"))
}

// uninstantiated names the type parameters of a generic type, where the receiver or the function around has them.
func (m *fixer) uninstantiated(_ types.Error, path []ast.Node, match []string) bool {
	id, ok := path[0].(*ast.Ident)
	if !ok {
		return false
	}
	f, ok := nearestDeclaration(path)
	spec := m.typeSpec(id.Name)
	if !ok || spec == nil || spec.TypeParams == nil {
		return false
	}
	names := namesOf(spec.TypeParams)
	receiver := f.Recv != nil && f.Recv.Pos() <= id.Pos() && id.End() <= f.Recv.End()
	if !receiver {
		own := f.Type.TypeParams
		var has []string
		switch {
		case own != nil:
			has = namesOf(own)
		case f.Recv != nil && len(f.Recv.List) == 1:
			ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
				if ix, ok := n.(*ast.IndexExpr); ok {
					has = append(has, m.text(ix.Index))
				}
				return true
			})
		}
		if !slices.Equal(has, names) {
			return false
		}
	}
	return m.fix("a generic type has its parameters behind it", m.after(id, "["+strings.Join(names, ", ")+"]"))
}

// nearestDeclaration returns the function declaration that a path ends in.
func nearestDeclaration(path []ast.Node) (*ast.FuncDecl, bool) {
	for _, n := range path {
		if f, ok := n.(*ast.FuncDecl); ok {
			return f, true
		}
	}
	return nil, false
}

// namesOf returns the names of a list of parameters.
func namesOf(list *ast.FieldList) (names []string) {
	for _, f := range list.List {
		for _, id := range f.Names {
			names = append(names, id.Name)
		}
	}
	return names
}

// typeSpec returns the declaration of a type of the program, or nil.
func (m *fixer) typeSpec(name string) *ast.TypeSpec {
	for _, d := range m.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
			for _, s := range g.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok && spec.Name.Name == name {
					return spec
				}
			}
		}
	}
	return nil
}

// constraintsFor are the constraints for what a program does with values of a type parameter, in the order in which
// they allow more.
var constraintsFor = []string{"any", "comparable", "cmp.Ordered", "~int | ~int64 | ~float64"}

// uncomparable gives a type parameter the constraint that an operator or a key of a map needs.
func (m *fixer) uncomparable(e types.Error, path []ast.Node, _ []string) bool {
	need := "comparable"
	switch {
	case strings.Contains(e.Msg, "cannot use operator"), strings.Contains(e.Msg, "operator + not defined on"):
		need = "cmp.Ordered"
	case strings.Contains(e.Msg, "not defined on"):
		need = "~int | ~int64 | ~float64"
	}
	name := ""
	for _, n := range path {
		x, ok := n.(ast.Expr)
		if !ok {
			break
		}
		if b, ok := x.(*ast.BinaryExpr); ok {
			x = b.X
		}
		if t := m.Info.TypeOf(x); t != nil && name == "" {
			if p, ok := types.Unalias(t).(*types.TypeParam); ok {
				name = p.Obj().Name()
			}
		}
	}
	if g := parameterNamed().FindStringSubmatch(e.Msg); g != nil {
		name = g[1] + g[2]
	}
	f, ok := nearestDeclaration(path)
	if !ok || name == "" || len(m.edits) > 0 {
		return false
	}
	list := f.Type.TypeParams
	if list == nil {
		list, name = m.parametersOfReceiver(f, name)
	}
	if list == nil {
		return false
	}
	for _, p := range list.List {
		has := strings.ReplaceAll(m.text(p.Type), "interface{}", "any")
		i := slices.Index(constraintsFor, has)
		if len(p.Names) == 1 && p.Names[0].Name == name && i >= 0 && i < slices.Index(constraintsFor, need) {
			return m.fix(name+" needs the constraint "+need, m.replace(p.Type, need))
		}
	}
	return false
}

// parametersOfReceiver returns the type parameter of the type that a method belongs to, and its name there.
func (m *fixer) parametersOfReceiver(f *ast.FuncDecl, name string) (*ast.FieldList, string) {
	if f.Recv == nil {
		return nil, ""
	}
	typ := f.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	ix, ok := typ.(*ast.IndexExpr)
	if !ok || m.text(ix.Index) != name {
		return nil, ""
	}
	spec := m.typeSpec(m.text(ix.X))
	if spec == nil || spec.TypeParams == nil || spec.TypeParams.NumFields() != 1 {
		return nil, ""
	}
	return spec.TypeParams, namesOf(spec.TypeParams)[0]
}

var parameterNamed = lazy.Regexp(`type parameter (\w+) |map key type (\w+) `)

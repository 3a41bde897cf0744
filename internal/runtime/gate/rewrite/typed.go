package rewrite

import (
	"go/ast"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// typed gives the declaration of a variable its type, and returns declarations that must precede it. An unexported type
// cannot be named here. A function of the text then has a type parameter in its place and returns the zero value. It is
// called with an exported value of that type, so no code of the program runs.
func (w *writer) typed(v *ast.ValueSpec, t types.Type) []ast.Decl {
	at := v.Pos()
	text := w.typeText(t)
	var params []*ast.Field
	var args []ast.Expr
	text = w.unexported().ReplaceAllStringFunc(text, func(name string) string {
		param := w.name("Type") + strconv.Itoa(len(args)+1)
		value, constraint := w.kept(name)
		args = append(args, &ast.Ident{NamePos: at, Name: value})
		params = append(params, &ast.Field{Names: []*ast.Ident{{NamePos: at, Name: param}},
			Type: &ast.Ident{NamePos: at, Name: constraint}})
		return param
	})
	if len(args) == 0 {
		v.Type = &ast.Ident{NamePos: at, Name: text}
		return nil
	}
	w.made++
	name := w.name("Zero") + strconv.Itoa(w.made)
	zero := function(name, at, &ast.ReturnStmt{Return: at})
	zero.Type.TypeParams = &ast.FieldList{Opening: at, List: params, Closing: at}
	for _, p := range params {
		zero.Type.Params.List = append(zero.Type.Params.List,
			&ast.Field{Type: &ast.Ident{NamePos: at, Name: p.Names[0].Name}})
	}
	zero.Type.Results = &ast.FieldList{Opening: at,
		List: []*ast.Field{{Names: []*ast.Ident{{NamePos: at, Name: "zero"}},
			Type: &ast.Ident{NamePos: at, Name: text}}}, Closing: at}
	v.Values = []ast.Expr{&ast.CallExpr{Fun: &ast.Ident{NamePos: at, Name: name}, Lparen: at, Args: args, Rparen: at}}
	return []ast.Decl{zero}
}

// unexported returns an expression that matches names of unexported types of other packages in the text of a type.
func (w *writer) unexported() *regexp.Regexp {
	return regexp.MustCompile(`\b` + w.name("Import") + `\d+\.[^\p{Lu}][\pL\pN_]*`)
}

// kept returns an expression of the named type, and a constraint that only such types satisfy. It refuses the program
// if there is no such expression.
func (w *writer) kept(name string) (value, constraint string) {
	alias, of, _ := strings.Cut(name, ".")
	for p, a := range w.imports {
		if a != alias {
			continue
		}
		t := p.Scope().Lookup(of).Type()
		if value := exported(p, t); value != "" {
			return alias + "." + value, w.constraint(t)
		}
	}
	w.refuse("a variable has a type that no package exports")
	return "nil", "any"
}

// exported returns an exported expression of the type: a variable of the package or a field of one of its types. It
// returns "" if there is neither.
func exported(p *types.Package, t types.Type) string {
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		if _, isVar := o.(*types.Var); isVar && types.Identical(o.Type(), t) {
			return name
		}
		s, isStruct := o.Type().Underlying().(*types.Struct)
		if _, isType := o.(*types.TypeName); !isType || !isStruct {
			continue
		}
		for f := range s.Fields() {
			if f.Exported() && types.Identical(f.Type(), t) {
				return name + "{}." + f.Name()
			}
		}
	}
	return ""
}

// constraint returns an interface with the type's underlying type and methods. Whatever accepts the type then accepts
// the type parameter.
func (w *writer) constraint(t types.Type) string {
	parts := []string{"~" + w.typeText(t.Underlying())}
	methods := types.NewMethodSet(t)
	for i := range methods.Len() {
		if f := methods.At(i).Obj(); f.Exported() {
			parts = append(parts, f.Name()+strings.TrimPrefix(w.typeText(f.Type()), "func"))
		}
	}
	return "interface{ " + strings.Join(parts, "; ") + " }"
}

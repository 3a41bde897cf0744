package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// declarations returns the program's declarations: its variables without values, and behind all the function that sets them.
func (w *writer) declarations() []ast.Decl {
	var out []ast.Decl
	for _, d := range w.file.Decls {
		g, ok := d.(*ast.GenDecl)
		switch {
		case !ok:
			out = append(out, d)
		case g.Tok == token.VAR:
			for _, spec := range g.Specs {
				out = append(out, w.variables(spec.(*ast.ValueSpec))...)
			}
		case g.Tok != token.IMPORT:
			out = append(out, g)
		}
	}
	return append(out, w.reset())
}

// variables declares those of a specification, each with its type.
func (w *writer) variables(spec *ast.ValueSpec) []ast.Decl {
	var out []ast.Decl
	for _, id := range spec.Names {
		if id.Name == "_" {
			continue
		}
		t := spec.Type
		if t == nil {
			t = &ast.Ident{NamePos: id.Pos(), Name: w.typeText(w.info.Defs[id].Type())}
		}
		out = append(out, &ast.GenDecl{TokPos: id.Pos(), Tok: token.VAR, Specs: []ast.Spec{&ast.ValueSpec{Names: []*ast.Ident{{NamePos: id.Pos(), Name: id.Name}}, Type: t}}})
	}
	return out
}

// unexported finds the name of a type that its package keeps to itself, in a type's text.
var unexported = regexp.MustCompile(`\b` + prefix + `Import\d+\.[^\p{Lu}]`)

// typeText writes a type as package level has it.
func (w *writer) typeText(t types.Type) string {
	for _, name := range w.pkg.Scope().Names() {
		if types.Universe.Lookup(name) != nil {
			w.refuse("it declares " + name + " anew")
		}
	}
	text := types.TypeString(t, func(p *types.Package) string {
		if p == w.pkg {
			return ""
		}
		path := p.Path()
		if path == allow.HostPath {
			path = allow.Host
		}
		if _, ok := allow.Find(path); !ok {
			w.refuse("a variable has a type of " + path)
		}
		if w.imports[path] == "" {
			w.imports[path] = prefix + "Import" + strconv.Itoa(len(w.imports))
		}
		return w.imports[path]
	})
	if unexported.MatchString(text) {
		w.refuse("a variable has a type that no package exports")
	}
	return text
}

// reset returns the function that gives every package variable its value, in the order of the language.
func (w *writer) reset() ast.Decl {
	body := &ast.BlockStmt{}
	for _, name := range w.pkg.Scope().Names() {
		if v, ok := w.pkg.Scope().Lookup(name).(*types.Var); ok {
			zero := &ast.CallExpr{Fun: ast.NewIdent(supportName + ".Zero"), Args: []ast.Expr{&ast.UnaryExpr{Op: token.AND, X: ast.NewIdent(v.Name())}}}
			body.List = append(body.List, &ast.ExprStmt{X: zero})
		}
	}
	values := w.values()
	for _, init := range w.info.InitOrder {
		at := init.Rhs.Pos()
		assign := &ast.AssignStmt{TokPos: at, Tok: token.ASSIGN, Rhs: []ast.Expr{values[init.Lhs[0]]}}
		for _, v := range init.Lhs {
			assign.Lhs = append(assign.Lhs, &ast.Ident{NamePos: at, Name: v.Name()})
		}
		body.List = append(body.List, assign)
	}
	return &ast.FuncDecl{Name: ast.NewIdent(resetName), Type: &ast.FuncType{Params: &ast.FieldList{}}, Body: body}
}

// values returns the expression of each variable's value, by the first variable where several have one; expressions have been replaced since the
// order was found.
func (w *writer) values() map[*types.Var]ast.Expr {
	out := map[*types.Var]ast.Expr{}
	for _, d := range w.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			spec := spec.(*ast.ValueSpec)
			for i, value := range spec.Values {
				out[w.info.Defs[spec.Names[i]].(*types.Var)] = value
			}
		}
	}
	return out
}

func importDecls(list map[string]string) []ast.Decl {
	var out []ast.Decl
	for _, name := range slices.Sorted(maps.Keys(list)) {
		spec := &ast.ImportSpec{Name: ast.NewIdent(name), Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(list[name])}}
		out = append(out, &ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}})
	}
	return out
}

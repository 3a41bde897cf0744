package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
)

// declarations returns the program's declarations, with variables declared without their values. Each variable is
// followed by a function that sets it, because a type declared inside a value has a number in its name, and this
// position keeps the number. The last declaration is a function that calls all of them in the language's initialisation
// order.
func (w *writer) declarations() []ast.Decl {
	setters := map[*types.Var]string{}
	var out []ast.Decl
	for _, d := range w.file.Decls {
		g, ok := d.(*ast.GenDecl)
		switch {
		case !ok:
			out = append(out, d)
		case g.Tok == token.VAR:
			for _, spec := range g.Specs {
				out = append(out, w.variables(spec.(*ast.ValueSpec))...)
				out = append(out, w.setters(spec.(*ast.ValueSpec), setters)...)
			}
		case g.Tok != token.IMPORT:
			out = append(out, g)
		}
	}
	return append(out, w.reset(setters))
}

// variables declares the variables of a specification, each with its type.
func (w *writer) variables(spec *ast.ValueSpec) []ast.Decl {
	var out []ast.Decl
	for i, id := range spec.Names {
		if id.Name == "_" {
			continue
		}
		v := &ast.ValueSpec{Names: []*ast.Ident{{NamePos: id.Pos(), Name: id.Name}}, Type: spec.Type}
		switch {
		case v.Type != nil:
		// The type may be unexported, so ZeroOf infers it from the value. Reading the value has no effect.
		case len(spec.Values) == len(spec.Names) && w.libraryVariable(spec.Values[i]):
			v.Values = []ast.Expr{&ast.CallExpr{Fun: &ast.Ident{NamePos: id.Pos(), Name: w.support("ZeroOf")},
				Args: spec.Values[i : i+1]}}
		default:
			out = append(out, w.typed(v, w.info.Defs[id].Type())...)
		}
		out = append(out, &ast.GenDecl{TokPos: id.Pos(), Tok: token.VAR, Specs: []ast.Spec{v}})
	}
	return out
}

// libraryVariable reports whether an expression is a variable of another package.
func (w *writer) libraryVariable(e ast.Expr) bool {
	s, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return false
	}
	_, ok = w.info.Uses[x].(*types.PkgName)
	_, isVar := w.info.Uses[s.Sel].(*types.Var)
	return ok && isVar
}

// setters returns a function for each value of a specification, and records its name under the value's first variable.
func (w *writer) setters(spec *ast.ValueSpec, names map[*types.Var]string) []ast.Decl {
	var out []ast.Decl
	for i, value := range spec.Values {
		vars := spec.Names[i : i+1]
		if len(spec.Values) < len(spec.Names) {
			vars = spec.Names
		}
		at := value.Pos()
		value, before := w.inTurn(value)
		assign := &ast.AssignStmt{TokPos: at, Tok: token.ASSIGN, Rhs: []ast.Expr{value}}
		for _, v := range vars {
			assign.Lhs = append(assign.Lhs, &ast.Ident{NamePos: at, Name: v.Name})
		}
		name := w.name("Reset") + strconv.Itoa(len(names)+1)
		names[w.info.Defs[vars[0]].(*types.Var)] = name
		out = append(out, function(name, at, append(before, assign)...))
	}
	return out
}

// function returns a function declaration without parameters.
func function(name string, at token.Pos, body ...ast.Stmt) *ast.FuncDecl {
	return &ast.FuncDecl{Name: &ast.Ident{NamePos: at, Name: name},
		Type: &ast.FuncType{Func: at, Params: &ast.FieldList{Opening: at, Closing: at}},
		Body: &ast.BlockStmt{Lbrace: at, List: body, Rbrace: at}}
}

// reset returns the function that sets every package variable to its initial value.
func (w *writer) reset(setters map[*types.Var]string) ast.Decl {
	var body []ast.Stmt
	call := func(name string, args ...ast.Expr) {
		body = append(body, &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent(name), Args: args}})
	}
	for _, name := range w.pkg.Scope().Names() {
		if v, ok := w.pkg.Scope().Lookup(name).(*types.Var); ok {
			call(w.support("Zero"), &ast.UnaryExpr{Op: token.AND, X: ast.NewIdent(v.Name())})
		}
	}
	for _, init := range w.info.InitOrder {
		call(setters[init.Lhs[0]])
	}
	return function(w.name("Reset"), token.NoPos, body...)
}

// importDecls returns an import declaration for each name, sorted by name.
func importDecls(list map[string]string, at token.Pos) []ast.Decl {
	var out []ast.Decl
	for _, name := range slices.Sorted(maps.Keys(list)) {
		out = append(out, importDecl(name, list[name], at))
	}
	return out
}

// blankImports returns an import declaration without a name for each path.
func blankImports(paths []string, at token.Pos) []ast.Decl {
	var out []ast.Decl
	for _, path := range paths {
		out = append(out, importDecl("_", path, at))
	}
	return out
}

func importDecl(name, path string, at token.Pos) ast.Decl {
	spec := &ast.ImportSpec{Name: &ast.Ident{NamePos: at, Name: name},
		Path: &ast.BasicLit{ValuePos: at, Kind: token.STRING, Value: strconv.Quote(path)}}
	return &ast.GenDecl{TokPos: at, Tok: token.IMPORT, Specs: []ast.Spec{spec}}
}

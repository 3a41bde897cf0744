// Package order rewrites a program so that go/ssa evaluates it in the Go compiler's order.
//
// The language does not specify whether node{pos: p.pos, kid: p.parse()} or return v, json.Unmarshal(data, &v) reads its operands before or after
// the call. The compiler makes the calls of a statement first and reads variables, fields and elements afterwards. go/ssa evaluates from left to
// right. Programs rely on the compiler. So where a statement both calls and reads, the package moves what the compiler evaluates early into new
// variables before the statement. The rules are those of cmd/compile/internal/walk/order.go: statement.go and flow.go follow its stmt, expression.go
// its expr1. runtimetypes.go says for which types the compiler takes addresses.
package order

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Apply rewrites a type-checked file, whose types are in info, and reports whether it changed anything. A changed file has to be checked again.
// A failure names the first place whose order cannot be expressed; the file is then half rewritten and must not be used. Source is the file's text.
func Apply(file *ast.File, info *types.Info, pkg *types.Package, source string) (changed bool, failure *Failure) {
	o := &orderer{info: info, pkg: pkg, prefix: "moved_", done: map[ast.Stmt]bool{}, survey: survey(file, info)}
	for strings.Contains(source, o.prefix) {
		o.prefix += "_"
	}
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			o.packageVariables(g)
		}
	}
	ast.Inspect(file, o.unlisted)
	ast.Inspect(file, o.visit)
	bound := o.bindMethods(file)
	return o.changed || bound || o.count > 0, o.failure
}

// A Failure is a place whose order of evaluation cannot be kept.
type Failure struct{ Pos token.Pos }

type orderer struct {
	info    *types.Info
	pkg     *types.Package
	survey  surveyor
	prefix  string // of the names of new variables; it does not occur in the program
	count   int    // of new variables
	changed bool   // the file changed in another way than by new variables
	done    map[ast.Stmt]bool
	failure *Failure
}

func (o *orderer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		n.List = o.list(n.List)
	case *ast.CaseClause:
		n.Body = o.list(n.Body)
	case *ast.CommClause:
		n.Body = o.list(n.Body)
	case *ast.IfStmt:
		if next, ok := n.Else.(*ast.IfStmt); ok {
			if moved, _ := o.stmt(next); len(moved) > 0 {
				n.Else = block(next, append(moved, next))
			}
		}
	case *ast.CompositeLit:
		o.constantsFirst(n)
	case *ast.IndexExpr:
		o.emptyArray(n)
	}
	return true
}

func (o *orderer) list(stmts []ast.Stmt) []ast.Stmt {
	var out []ast.Stmt
	for _, s := range stmts {
		again := o.storedAgain(s)
		out = append(append(out, o.place(s)...), again...)
	}
	return out
}

// place returns the statements that replace a statement of a list.
func (o *orderer) place(s ast.Stmt) []ast.Stmt {
	if l, ok := s.(*ast.LabeledStmt); ok {
		return o.labeled(l)
	}
	moved, scoped := o.stmt(s)
	switch {
	case len(moved) == 0:
		return []ast.Stmt{s}
	case scoped, len(o.survey.gotos) > 0 && !declares(s): // a goto must not jump over a declaration
		return []ast.Stmt{block(s, append(moved, s))}
	}
	return append(moved, s)
}

// labeled handles a labeled statement: break and continue need the label at the statement itself, goto needs one before the moved statements.
func (o *orderer) labeled(l *ast.LabeledStmt) []ast.Stmt {
	stmts := o.place(l.Stmt)
	if len(stmts) == 1 && stmts[0] == l.Stmt {
		return []ast.Stmt{l}
	}
	label, _ := o.info.Defs[l.Label].(*types.Label)
	gotos, out := o.survey.gotos[label], []ast.Stmt{}
	if len(gotos) > 0 {
		entry := &ast.LabeledStmt{Label: &ast.Ident{NamePos: l.Pos(), Name: l.Label.Name}, Colon: l.Colon, Stmt: &ast.EmptyStmt{Semicolon: l.Colon}}
		if o.survey.left[label] {
			def, _ := o.variable(l.Pos())
			entry.Label = def
			for _, g := range gotos {
				g.Label = &ast.Ident{NamePos: g.Label.Pos(), Name: def.Name}
			}
		}
		out = append(out, entry)
	}
	if !o.survey.left[label] {
		return append(out, stmts...)
	}
	inner := &stmts
	if b, ok := stmts[0].(*ast.BlockStmt); ok && len(stmts) == 1 {
		inner = &b.List
	}
	l.Stmt = (*inner)[len(*inner)-1]
	(*inner)[len(*inner)-1] = l
	return append(out, stmts...)
}

// packageVariables rewrites the initial values of package variables.
func (o *orderer) packageVariables(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i := range v.Values {
			if len(v.Names) == len(v.Values) {
				o.initial(&v.Values[i], o.info.TypeOf(v.Names[i]))
			}
		}
	}
}

// initial wraps an initial value of type t in a function if it needs statements before it. The elements of structs, arrays and slices are handled
// one by one, because the compiler assigns them so in package variables.
func (o *orderer) initial(e *ast.Expr, t types.Type) {
	x, at := ast.Unparen(*e), (*e).Pos()
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.AND {
		x = ast.Unparen(u.X)
	}
	if lit, ok := x.(*ast.CompositeLit); ok {
		if _, isMap := under[*types.Map](o.typeOf(lit)); !isMap {
			o.elements(lit, func(e *ast.Expr, to types.Type) { o.initial(e, to) })
			return
		}
	}
	if !o.mixed(*e) {
		return
	}
	if t == nil { // the variable is blank
		t = o.typeOf(*e)
	}
	var moved []ast.Stmt
	o.parts(e, &moved)
	if len(moved) == 0 {
		return
	}
	result := o.typeExpr(types.Default(t), at)
	if result == nil {
		o.fail(at)
		return
	}
	*e = called(*e, result, append(moved, &ast.ReturnStmt{Return: at, Results: []ast.Expr{*e}}))
}

// variable returns two identifiers of the same new name: one for its declaration, one for its use.
func (o *orderer) variable(pos token.Pos) (def, use *ast.Ident) {
	o.count++
	name := fmt.Sprintf("%s%d", o.prefix, o.count)
	return &ast.Ident{NamePos: pos, Name: name}, &ast.Ident{NamePos: pos, Name: name}
}

func (o *orderer) fail(pos token.Pos) {
	if o.failure == nil {
		o.failure = &Failure{Pos: pos}
	}
}

// called returns a call of a function literal with these statements. Result is its result type; nil means none.
func called(at ast.Node, result ast.Expr, stmts []ast.Stmt) *ast.CallExpr {
	lit := &ast.FuncLit{Type: &ast.FuncType{Func: at.Pos(), Params: &ast.FieldList{}}, Body: block(at, stmts)}
	if result != nil {
		lit.Type.Results = &ast.FieldList{List: []*ast.Field{{Type: result}}}
	}
	return &ast.CallExpr{Fun: lit, Lparen: at.Pos(), Rparen: at.End()}
}

func block(at ast.Node, stmts []ast.Stmt) *ast.BlockStmt {
	return &ast.BlockStmt{Lbrace: at.Pos(), List: stmts, Rbrace: at.End()}
}

// declares reports whether a statement declares names in its block.
func declares(s ast.Stmt) bool {
	if a, ok := s.(*ast.AssignStmt); ok {
		return a.Tok == token.DEFINE
	}
	_, ok := s.(*ast.DeclStmt)
	return ok
}

// names reports whether all expressions are plain identifiers.
func names(list []ast.Expr) bool {
	return !slices.ContainsFunc(list, func(e ast.Expr) bool {
		_, ok := ast.Unparen(e).(*ast.Ident)
		return !ok
	})
}

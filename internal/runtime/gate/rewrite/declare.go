package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// declarations returns the program's declarations. A variable is declared without its value, and behind it stands a function that sets it: types that are
// declared within values keep their numbers so, which are part of their names. The last one calls all of them in the order of the language.
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

// variables declares those of a specification, each with its type.
func (w *writer) variables(spec *ast.ValueSpec) []ast.Decl {
	var out []ast.Decl
	for i, id := range spec.Names {
		if id.Name == "_" {
			continue
		}
		v := &ast.ValueSpec{Names: []*ast.Ident{{NamePos: id.Pos(), Name: id.Name}}, Type: spec.Type}
		switch {
		case v.Type != nil:
		case len(spec.Values) == len(spec.Names) && w.libraryVariable(spec.Values[i]): // it may have a type that its package keeps to itself, and to read it does nothing
			v.Values = []ast.Expr{&ast.CallExpr{Fun: &ast.Ident{NamePos: id.Pos(), Name: supportName + ".ZeroOf"}, Args: spec.Values[i : i+1]}}
		default:
			v.Type = &ast.Ident{NamePos: id.Pos(), Name: w.typeText(w.info.Defs[id].Type())}
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

// setters returns a function for each value of a specification, and notes its name for the value's first variable.
func (w *writer) setters(spec *ast.ValueSpec, names map[*types.Var]string) []ast.Decl {
	var out []ast.Decl
	for i, value := range spec.Values {
		vars := spec.Names[i : i+1]
		if len(spec.Values) < len(spec.Names) {
			vars = spec.Names
		}
		w.takeTurns(value)
		at := value.Pos()
		assign := &ast.AssignStmt{TokPos: at, Tok: token.ASSIGN, Rhs: []ast.Expr{value}}
		for _, v := range vars {
			assign.Lhs = append(assign.Lhs, &ast.Ident{NamePos: at, Name: v.Name})
		}
		name := resetName + strconv.Itoa(len(names)+1)
		names[w.info.Defs[vars[0]].(*types.Var)] = name
		out = append(out, function(name, at, assign))
	}
	return out
}

// takeTurns keeps the order in which the parts of literals are evaluated that call functions of the program beside reading variables: the compiler evaluates one part after
// the other where it initialises a package, and calls first where it assigns.
func (w *writer) takeTurns(value ast.Expr) {
	ast.Inspect(value, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if calls, reads := w.mixture(lit); calls && reads {
				w.partsInTurn(lit)
				return false
			}
		}
		_, body := n.(*ast.FuncLit)
		return !body
	})
}

// partsInTurn makes a call of each part of a literal that reads, since calls take turns.
func (w *writer) partsInTurn(lit *ast.CompositeLit) {
	_, isMap := w.info.TypeOf(lit).Underlying().(*types.Map)
	for i, part := range lit.Elts {
		if kv, ok := part.(*ast.KeyValueExpr); ok {
			kv.Value = w.inTurn(kv.Value, isMap)
			if isMap {
				kv.Key = w.inTurn(kv.Key, isMap)
			}
			continue
		}
		lit.Elts[i] = w.inTurn(part, false)
	}
}

// inTurn is one part. Within a literal the parts take turns too, but in an entry of a map, which the compiler assigns.
func (w *writer) inTurn(part ast.Expr, entry bool) ast.Expr {
	inner := ast.Unparen(part)
	if and, ok := inner.(*ast.UnaryExpr); ok && and.Op == token.AND {
		inner = ast.Unparen(and.X)
	}
	calls, reads := w.mixture(part)
	if lit, ok := inner.(*ast.CompositeLit); ok && (!entry || !calls || lit.Type == nil) {
		if !entry || !calls {
			w.partsInTurn(lit)
		}
		return part
	}
	if tv := w.info.Types[part]; tv.Value != nil || tv.IsNil() || tv.Type == nil || !reads {
		return part
	}
	return &ast.CallExpr{Fun: &ast.Ident{NamePos: part.Pos(), Name: supportName + ".Value"}, Lparen: part.Pos(), Args: []ast.Expr{w.settled(part)}, Rparen: part.End()}
}

// mixture reports whether an expression calls functions of the program, and whether it reads variables.
func (w *writer) mixture(e ast.Expr) (calls, reads bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			calls = calls || w.callsProgram(n)
		case *ast.Ident:
			v, ok := w.info.Uses[n].(*types.Var)
			reads = reads || ok && !v.IsField() && v.Pkg() == w.pkg
		}
		return true
	})
	return calls, reads
}

// callsProgram reports whether a call may run code of the program: all but conversions, built-in functions and functions of other packages.
func (w *writer) callsProgram(call *ast.CallExpr) bool {
	fun := ast.Unparen(call.Fun)
	if w.info.Types[fun].IsType() || w.info.Types[fun].IsBuiltin() {
		return false
	}
	if s, ok := fun.(*ast.SelectorExpr); ok {
		fun = s.Sel
	}
	id, ok := fun.(*ast.Ident)
	if !ok {
		return true
	}
	if strings.HasPrefix(id.Name, supportName+".") {
		return false
	}
	f, ok := w.info.Uses[id].(*types.Func)
	return !ok || f.Pkg() == w.pkg
}

func function(name string, at token.Pos, body ...ast.Stmt) *ast.FuncDecl {
	return &ast.FuncDecl{Name: &ast.Ident{NamePos: at, Name: name}, Type: &ast.FuncType{Func: at, Params: &ast.FieldList{Opening: at, Closing: at}}, Body: &ast.BlockStmt{Lbrace: at, List: body, Rbrace: at}}
}

// unexported finds the name of a type that its package keeps to itself, in a type's text.
var unexported = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b` + prefix + `Import\d+\.[^\p{Lu}]`) })

// typeText writes a type as package level has it.
func (w *writer) typeText(t types.Type) string {
	for _, name := range w.pkg.Scope().Names() {
		if _, isType := types.Universe.Lookup(name).(*types.TypeName); isType {
			w.refuse("it declares the type " + name + " anew, and has a package variable without a type")
		}
	}
	text := types.TypeString(t, func(p *types.Package) string {
		if p == w.pkg {
			return ""
		}
		path := allow.SeenPath(p.Path())
		if _, ok := allow.Find(path); !ok {
			w.refuse("a variable has a type of " + path)
		}
		if w.imports[path] == "" {
			w.imports[path] = prefix + "Import" + strconv.Itoa(len(w.imports))
		}
		return w.imports[path]
	})
	if unexported().MatchString(text) {
		w.refuse("a variable has a type that no package exports")
	}
	return text
}

// reset returns the function that gives every package variable its value.
func (w *writer) reset(setters map[*types.Var]string) ast.Decl {
	var body []ast.Stmt
	call := func(name string, args ...ast.Expr) {
		body = append(body, &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent(name), Args: args}})
	}
	for _, name := range w.pkg.Scope().Names() {
		if v, ok := w.pkg.Scope().Lookup(name).(*types.Var); ok {
			call(supportName+".Zero", &ast.UnaryExpr{Op: token.AND, X: ast.NewIdent(v.Name())})
		}
	}
	for _, init := range w.info.InitOrder {
		call(setters[init.Lhs[0]])
	}
	return function(resetName, token.NoPos, body...)
}

func importDecls(list map[string]string, at token.Pos) []ast.Decl {
	var out []ast.Decl
	for _, name := range slices.Sorted(maps.Keys(list)) {
		spec := &ast.ImportSpec{Name: &ast.Ident{NamePos: at, Name: name}, Path: &ast.BasicLit{ValuePos: at, Kind: token.STRING, Value: strconv.Quote(list[name])}}
		out = append(out, &ast.GenDecl{TokPos: at, Tok: token.IMPORT, Specs: []ast.Spec{spec}})
	}
	return out
}

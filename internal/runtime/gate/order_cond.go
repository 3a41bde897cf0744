package gate

import (
	"go/ast"
	"go/token"
)

// This file brings calls into order where no statement can go before them: in conditions, the right sides of && and ||, the cases of
// a switch.

// open makes room for statements before the parts of s that have none: a block around an if or a switch with an initial
// statement, a break in place of a loop's condition. It returns what stands for s and what goes before it.
func (o *orderer) open(s ast.Stmt) (moved []ast.Stmt, out ast.Stmt) {
	switch s := s.(type) {
	case *ast.LabeledStmt:
		if !o.jumps[s.Label.Name] {
			if loop, ok := s.Stmt.(*ast.ForStmt); ok {
				moved, s.Stmt = o.open(loop)
			}
		}
	case *ast.IfStmt:
		if s.Init != nil && (o.riskyStmt(s.Init) || o.mixed(s.Cond)) {
			return nil, block(s, &s.Init)
		}
	case *ast.SwitchStmt:
		if s.Init != nil && (o.riskyStmt(s.Init) || s.Tag != nil && o.mixed(s.Tag)) {
			return nil, block(s, &s.Init)
		}
		if s.Init == nil && s.Tag != nil && o.mixed(s.Tag) {
			o.move(&s.Tag, &moved)
		}
		if s.Tag == nil {
			o.cases(s.Body)
		}
	case *ast.TypeSwitchStmt:
		if s.Init != nil && o.riskyStmt(s.Init) {
			return nil, block(s, &s.Init)
		}
	case *ast.RangeStmt:
		if o.mixed(s.X) {
			o.exprs([]ast.Expr{s.X}, 0, &moved)
		}
	case *ast.ForStmt:
		if s.Init != nil {
			moved = o.stmt(s.Init)
		}
		if s.Cond != nil && o.mixed(s.Cond) {
			o.openLoop(s)
		}
	}
	return moved, s
}

// block puts s into a block of its own, behind its initial statement.
func block(s ast.Stmt, init *ast.Stmt) ast.Stmt {
	first := *init
	*init = nil
	return &ast.BlockStmt{Lbrace: s.Pos(), List: []ast.Stmt{first, s}, Rbrace: s.End()}
}

// openLoop moves a loop's condition into its body.
func (o *orderer) openLoop(s *ast.ForStmt) {
	var moved []ast.Stmt
	o.move(&s.Cond, &moved)
	if len(moved) == 0 {
		return
	}
	at := s.Cond.Pos()
	stop := &ast.IfStmt{If: at, Cond: &ast.UnaryExpr{OpPos: at, Op: token.NOT, X: &ast.ParenExpr{Lparen: at, X: s.Cond, Rparen: at}},
		Body: &ast.BlockStmt{Lbrace: at, List: []ast.Stmt{&ast.BranchStmt{TokPos: at, Tok: token.BREAK}}, Rbrace: at}}
	s.Cond = nil
	s.Body.List = append(append(moved, stop), &ast.BlockStmt{Lbrace: s.Body.Lbrace, List: s.Body.List, Rbrace: s.Body.Rbrace})
}

// cases wraps the cases of a switch without a tag.
func (o *orderer) cases(body *ast.BlockStmt) {
	for _, s := range body.List {
		if clause, ok := s.(*ast.CaseClause); ok {
			for i := range clause.List {
				o.wrap(&clause.List[i])
			}
		}
	}
}

// wrap makes a condition that is evaluated only sometimes a function, in which statements can go before it.
func (o *orderer) wrap(e *ast.Expr) {
	if !o.mixed(*e) || recovers(*e) || !o.plainBool(*e) {
		return
	}
	x, start, end := *e, (*e).Pos(), (*e).End()
	var moved []ast.Stmt
	o.move(&x, &moved)
	if len(moved) == 0 {
		return
	}
	results := &ast.FieldList{List: []*ast.Field{{Type: &ast.Ident{NamePos: start, Name: "bool"}}}}
	body := &ast.BlockStmt{Lbrace: start, List: append(moved, &ast.ReturnStmt{Return: start, Results: []ast.Expr{x}}), Rbrace: end}
	lit := &ast.FuncLit{Type: &ast.FuncType{Func: start, Params: &ast.FieldList{}, Results: results}, Body: body}
	*e = &ast.CallExpr{Fun: lit, Lparen: start, Rparen: end}
}

func recovers(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == "recover"
		return !found
	})
	return found
}

func (o *orderer) riskyStmt(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && (o.mixed(a.Rhs...) || a.Tok != token.DEFINE && o.risky(1, a.Rhs...))
}

// mixed reports whether, among expressions that are evaluated together, a call of the program's own stands beside a read of something
// that it may change.
func (o *orderer) mixed(list ...ast.Expr) bool {
	calls, reads, within := 0, 0, false
	for _, e := range list {
		ast.Inspect(e, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit:
				return false
			case *ast.BinaryExpr:
				if n.Op == token.LAND || n.Op == token.LOR {
					within = within || o.mixed(n.X) || o.mixed(n.Y)
					return false
				}
			case *ast.CallExpr:
				if o.ownCall(n) {
					calls++
					args := n.Args
					if s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && o.packageOf(s) == "" {
						if _, plain := s.X.(*ast.Ident); !plain {
							args = append([]ast.Expr{s.X}, args...)
						}
					}
					within = within || o.mixed(args...)
					return false
				}
			case *ast.KeyValueExpr:
				if _, field := n.Key.(*ast.Ident); field {
					within = within || o.mixed(n.Value)
				}
			case *ast.SelectorExpr:
				if o.packageOf(n) != "" {
					return false
				}
				if _, plain := n.X.(*ast.Ident); plain {
					reads++
					return false
				}
			case *ast.IndexExpr, *ast.StarExpr, *ast.SliceExpr:
				reads++
			case *ast.Ident:
				if n.Obj != nil && n.Obj.Kind == ast.Var && o.shared[n.Obj] {
					reads++
				}
			}
			return true
		})
	}
	return within || calls > 0 && reads > 0
}

// survey finds the variables that a call may change: those of the package, those that a function literal captures, those whose
// address is taken or may be, for a method; and the labels that goto statements jump to.
func (o *orderer) survey() {
	o.shared, o.jumps = map[*ast.Object]bool{}, map[string]bool{}
	var lits []*ast.FuncLit
	var walk func(n ast.Node) bool
	walk = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			lits = append(lits, n)
			ast.Inspect(n.Body, walk)
			lits = lits[:len(lits)-1]
			return false
		case *ast.BranchStmt:
			if n.Tok == token.GOTO && n.Label != nil {
				o.jumps[n.Label.Name] = true
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				o.share(n.X)
			}
		case *ast.SliceExpr:
			o.share(n.X)
		case *ast.CallExpr:
			if s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
				o.share(s.X)
			}
		case *ast.Ident:
			if n.Obj != nil && n.Obj.Kind == ast.Var && len(lits) > 0 && (n.Obj.Pos() < lits[len(lits)-1].Pos() || n.Obj.Pos() > lits[len(lits)-1].End()) {
				o.shared[n.Obj] = true
			}
		}
		return true
	}
	for _, d := range o.c.file.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if v, ok := s.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						o.shared[id.Obj] = true
					}
				}
			}
		}
		ast.Inspect(d, walk)
	}
}

// share notes that the variable in which the place e lies may be reached by other names.
func (o *orderer) share(e ast.Expr) {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			if x.Obj != nil {
				o.shared[x.Obj] = true
			}
			return
		default:
			return
		}
	}
}

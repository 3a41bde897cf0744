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
		if loop, ok := s.Stmt.(*ast.ForStmt); ok && !o.jumps[s.Label.Name] {
			moved, s.Stmt = o.open(loop)
		}
	case *ast.IfStmt:
		if o.mustPrecede(s.Init, s.Cond) {
			return nil, block(s, &s.Init)
		}
	case *ast.SwitchStmt:
		return o.openSwitch(s)
	case *ast.TypeSwitchStmt:
		if o.mustPrecede(s.Init, nil) {
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
		if o.mixed(s.Cond) {
			o.openLoop(s)
		}
	}
	return moved, s
}

// mustPrecede reports whether an initial statement, where there is one, has to stand before its statement: for calls of its own or of the
// condition behind it.
func (o *orderer) mustPrecede(init ast.Stmt, cond ast.Expr) bool {
	return init != nil && (o.riskyStmt(init) || o.mixed(cond))
}

func (o *orderer) openSwitch(s *ast.SwitchStmt) (moved []ast.Stmt, out ast.Stmt) {
	switch {
	case o.mustPrecede(s.Init, s.Tag):
		return nil, block(s, &s.Init)
	case s.Tag == nil:
		o.cases(s.Body)
	case s.Init == nil && o.mixed(s.Tag):
		o.move(&s.Tag, &moved)
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
// that it may change. An expression may be nil.
func (o *orderer) mixed(list ...ast.Expr) bool {
	m := mixture{o: o}
	for _, e := range list {
		if e != nil {
			ast.Inspect(e, m.visit)
		}
	}
	return m.within || m.calls && m.reads
}

// A mixture is what expressions that are evaluated together do.
type mixture struct {
	o            *orderer
	calls, reads bool
	within       bool // the operands of a part are a mixture
}

func (m *mixture) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		return false
	case *ast.BinaryExpr:
		if n.Op == token.LAND || n.Op == token.LOR {
			m.within = m.within || m.o.mixed(n.X) || m.o.mixed(n.Y)
			return false
		}
	case *ast.CallExpr:
		return !m.call(n)
	case *ast.KeyValueExpr:
		if _, field := n.Key.(*ast.Ident); field {
			m.within = m.within || m.o.mixed(n.Value)
		}
	case *ast.SelectorExpr:
		return m.selector(n)
	case *ast.IndexExpr, *ast.StarExpr, *ast.SliceExpr:
		m.reads = true
	case *ast.Ident:
		m.reads = m.reads || n.Obj != nil && n.Obj.Kind == ast.Var && m.o.shared[n.Obj]
	}
	return true
}

// call notes a call of the program's own, with its operands, and reports whether it is one.
func (m *mixture) call(n *ast.CallExpr) bool {
	if !m.o.ownCall(n) {
		return false
	}
	m.calls = true
	operands := n.Args
	if s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok && m.o.packageOf(s) == "" {
		if _, plain := s.X.(*ast.Ident); !plain {
			operands = append([]ast.Expr{s.X}, operands...)
		}
	}
	m.within = m.within || m.o.mixed(operands...)
	return true
}

// selector reports whether the parts of a selector have to be looked at: not those of a package's name, nor of a variable's field.
func (m *mixture) selector(n *ast.SelectorExpr) bool {
	if m.o.packageOf(n) != "" {
		return false
	}
	_, plain := n.X.(*ast.Ident)
	m.reads = m.reads || plain
	return !plain
}

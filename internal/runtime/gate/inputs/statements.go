package inputs

import (
	"go/ast"
	"go/token"
)

func (fr *frame) block(list []ast.Stmt) {
	for _, s := range list {
		fr.statement(s)
	}
}

func (fr *frame) statement(s ast.Stmt) {
	if s == nil || !fr.f.step() {
		return
	}
	switch s := s.(type) {
	case *ast.AssignStmt:
		fr.assignment(s)
	case *ast.DeclStmt:
		if d, ok := s.Decl.(*ast.GenDecl); ok {
			fr.declare(d)
		}
	case *ast.ExprStmt:
		fr.eval(s.X)
	case *ast.IncDecStmt:
		fr.assign(s.X, nil, nil)
	case *ast.ReturnStmt:
		fr.returned(s)
	case *ast.BlockStmt:
		fr.block(s.List)
	case *ast.LabeledStmt:
		fr.statement(s.Stmt)
	case *ast.DeferStmt:
		fr.eval(s.Call)
	case *ast.GoStmt:
		fr.eval(s.Call)
	case *ast.SendStmt:
		fr.eval(s.Chan)
		fr.escape(fr.eval(s.Value))
	case *ast.IfStmt:
		fr.ifStatement(s)
	case *ast.ForStmt:
		fr.forStatement(s)
	case *ast.RangeStmt:
		fr.rangeStatement(s)
	case *ast.SwitchStmt:
		fr.switchStatement(s)
	case *ast.TypeSwitchStmt:
		fr.typeSwitch(s)
	case *ast.SelectStmt:
		for _, c := range s.Body.List {
			if c, ok := c.(*ast.CommClause); ok {
				fr.statement(c.Comm)
				fr.block(c.Body)
			}
		}
	}
}

func (fr *frame) assignment(s *ast.AssignStmt) {
	if s.Tok == token.DEFINE {
		for _, l := range s.Lhs {
			if id, ok := l.(*ast.Ident); ok {
				fr.note(id)
			}
		}
	}
	if s.Tok != token.ASSIGN && s.Tok != token.DEFINE { // x += y
		fr.eval(s.Lhs[0])
		fr.eval(s.Rhs[0])
		return
	}
	fr.assignAll(s.Lhs, s.Rhs)
}

func (fr *frame) returned(s *ast.ReturnStmt) {
	if hard, _ := fr.fails([]ast.Stmt{s}); hard {
		fr.failing++
		defer func() { fr.failing-- }()
	}
	if fr.returns != nil && len(s.Results) == 1 && fr.returns.Len() > 1 {
		for i, v := range fr.several(s.Results[0]) {
			fr.result(i, v)
		}
		return
	}
	for i, e := range s.Results {
		fr.result(i, fr.eval(e))
	}
}

// within visits code that runs on a condition.
func (fr *frame) within(missing, guards []*read, atLeast int, code func()) {
	was := *fr
	fr.missing, fr.guards, fr.atLeast = union(fr.missing, missing), union(fr.guards, guards), max(fr.atLeast, atLeast)
	fr.branch++
	code()
	fr.missing, fr.guards, fr.atLeast, fr.branch = was.missing, was.guards, was.atLeast, was.branch
}

// failingBlock visits statements; what they do with an argument does not count where they end in an error.
func (fr *frame) failingBlock(list []ast.Stmt) {
	if hard, _ := fr.fails(list); hard {
		fr.failing++
		defer func() { fr.failing-- }()
	}
	fr.block(list)
}

func (fr *frame) ifStatement(s *ast.IfStmt) {
	fr.branch++ // variables of its head are its own
	defer func() { fr.branch-- }()
	if s.Init != nil {
		fr.statement(s.Init)
	}
	fr.eval(s.Cond)
	absent, there := fr.absent(s.Cond), fr.there(s.Cond)
	fr.judge(absent, s.Body.List)
	fr.within(absent.reads, there.reads, there.count, func() { fr.failingBlock(s.Body.List) })
	if s.Else == nil {
		return
	}
	otherwise := []ast.Stmt{s.Else}
	fr.judge(there, otherwise)
	fr.within(there.reads, absent.reads, absent.count, func() {
		if b, ok := s.Else.(*ast.BlockStmt); ok {
			fr.failingBlock(b.List)
			return
		}
		fr.statement(s.Else)
	})
}

// judge looks at what the program does when arguments are missing.
func (fr *frame) judge(when evidence, list []ast.Stmt) {
	hard, soft := fr.fails(list)
	switch {
	case hard:
		for _, r := range when.reads {
			fr.require(r)
		}
		if fr.atLeast < when.count && fr.f.minimum < when.count && len(fr.guards) == 0 {
			fr.f.minimum = when.count
		}
	case !soft && ends(list):
		for _, r := range when.reads {
			fr.defaulted(r, nil)
		}
	}
}

// require notes that the program fails without the argument, unless the code at hand runs only with it.
func (fr *frame) require(r *read) {
	r = r.root()
	if contains(fr.guards, r) || r.place >= 0 && r.place < fr.atLeast {
		return
	}
	r.must = true
}

func (fr *frame) forStatement(s *ast.ForStmt) {
	fr.branch++
	defer func() { fr.branch-- }()
	if s.Init != nil {
		fr.statement(s.Init)
		if a, ok := s.Init.(*ast.AssignStmt); ok {
			for _, l := range a.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					delete(fr.numbers, fr.f.info.ObjectOf(id))
				}
			}
		}
	}
	if s.Cond != nil {
		fr.eval(s.Cond)
	}
	fr.block(s.Body.List)
	if s.Post != nil {
		fr.statement(s.Post)
	}
}

func (fr *frame) rangeStatement(s *ast.RangeStmt) {
	fr.branch++
	defer func() { fr.branch-- }()
	x := fr.eval(s.X)
	var element *value
	switch {
	case x == nil:
	case x.kwargs:
		fr.f.open = true
	case x.args:
		fr.f.readRest(x.from)
		element = single(fr.f.rest)
	case len(x.texts) > 0:
		element = &value{texts: x.texts}
	case x.fn != nil:
		fr.escape(x)
	default:
		element = fr.element(x)
	}
	for _, target := range []ast.Expr{s.Key, s.Value} {
		id, ok := target.(*ast.Ident)
		if !ok {
			continue
		}
		fr.note(id)
		if target == s.Value && element != nil {
			if obj := fr.f.info.ObjectOf(id); obj != nil {
				fr.owner(obj).vars[obj] = element
			}
		}
	}
	fr.block(s.Body.List)
}

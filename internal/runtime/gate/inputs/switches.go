package inputs

import "go/ast"

func (fr *frame) switchStatement(s *ast.SwitchStmt) {
	fr.branch++
	defer func() { fr.branch-- }()
	if s.Init != nil {
		fr.statement(s.Init)
	}
	tag := fr.eval(s.Tag)
	zero := false
	for _, c := range s.Body.List {
		clause, ok := c.(*ast.CaseClause)
		if !ok {
			continue
		}
		absent, there := evidence{}, evidence{}
		for _, e := range clause.List {
			fr.eval(e)
			if s.Tag == nil {
				absent = absent.or(fr.absent(e))
				there = fr.there(e)
				continue
			}
			zero = zero || isZero(fr.f.info, e)
			if tag != nil && !tag.derived && !isNil(fr.f.info, e) {
				for _, r := range tag.reads {
					r.root().is(jsonTypeOf(fr.f.info.TypeOf(e)))
				}
			}
		}
		if len(clause.List) > 1 {
			there = evidence{}
		}
		fr.judge(absent, clause.Body)
		fr.within(absent.reads, there.reads, there.count, func() { fr.failingBlock(clause.Body) })
	}
	if !zero && tag != nil && !tag.other {
		fr.defaultClause(s.Body.List, tag.reads)
	}
}

// defaultClause looks at what becomes of a missing argument that no case stands for.
func (fr *frame) defaultClause(clauses []ast.Stmt, reads []*read) {
	for _, c := range clauses {
		if clause, ok := c.(*ast.CaseClause); ok && clause.List == nil {
			fr.judge(evidence{reads: reads}, clause.Body)
		}
	}
}

func (fr *frame) typeSwitch(s *ast.TypeSwitchStmt) {
	fr.branch++
	defer func() { fr.branch-- }()
	if s.Init != nil {
		fr.statement(s.Init)
	}
	var x *value
	switch a := s.Assign.(type) {
	case *ast.AssignStmt:
		if t, ok := a.Rhs[0].(*ast.TypeAssertExpr); ok {
			x = fr.eval(t.X)
		}
	case *ast.ExprStmt:
		if t, ok := a.X.(*ast.TypeAssertExpr); ok {
			x = fr.eval(t.X)
		}
	}
	var reads []*read
	if x != nil {
		reads = x.reads
	}
	nothing := false
	for _, c := range s.Body.List {
		clause, ok := c.(*ast.CaseClause)
		if !ok {
			continue
		}
		nothing = fr.typeClause(clause, x, reads) || nothing
	}
	if !nothing {
		fr.defaultClause(s.Body.List, reads)
	}
}

// typeClause visits a case and reports whether it stands for a missing value.
func (fr *frame) typeClause(clause *ast.CaseClause, x *value, reads []*read) (nothing bool) {
	for _, t := range clause.List {
		if isNil(fr.f.info, t) {
			nothing = true
			continue
		}
		for _, r := range reads {
			x.asserted(r.root(), fr.typeOf(t))
		}
	}
	hard, soft := fr.fails(clause.Body)
	if clause.List == nil && !hard && !soft && len(clause.Body) > 0 {
		for _, r := range reads {
			r.root().anything = true
		}
	}
	guards, missing := reads, []*read(nil)
	if nothing || clause.List == nil {
		guards, missing = nil, reads
	}
	if nothing && len(clause.List) == 1 {
		fr.judge(evidence{reads: reads}, clause.Body)
		if !hard && !soft {
			for _, r := range reads {
				fr.defaulted(r, nil)
			}
		}
	}
	if obj := fr.f.info.Implicits[clause]; obj != nil && x != nil {
		inner := *x
		inner.derived = clause.List != nil
		fr.vars[obj] = &inner
	}
	fr.within(missing, guards, 0, func() { fr.failingBlock(clause.Body) })
	return nothing
}

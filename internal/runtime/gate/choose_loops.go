package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// loops lists the kinds of nodes that loops consist of, as plain does. Ranges over strings are missing on purpose:
// yaegi converts the whole string at each step, so their cost grows with the square of its length.
func loops() []rule {
	return []rule{
		runs[*ast.BranchStmt](no("labels, goto and fallthrough", jumpsFar)),
		runs[*ast.ForStmt](
			no("constant conditions", constantFor),
			no("loops that lack one of their three parts", lacksPart), // yaegi ran the init again each round
			// yaegi loses the change at the end of the round.
			no("loop variables that the body changes", changesCounter),
			no("comma-ok forms in loops", forCommaOK)), // if not ok, yaegi keeps the last round's value
		runs[*ast.RangeStmt](
			no("ranges without variables", rangesAlone),
			no("ranges over other than slices", rangesOther),
			no("ranges that assign", rangeAssigns),
			no("comma-ok forms in loops", rangeCommaOK)),
	}
}

func jumpsFar(_ *chooser, n *ast.BranchStmt) bool {
	return n.Label != nil || n.Tok != token.BREAK && n.Tok != token.CONTINUE
}

func constantFor(c *chooser, n *ast.ForStmt) bool { return c.constant(n.Cond) }

// lacksPart reports whether a for statement has some but not all of its parts. A loop with only a condition, or with
// nothing, is fine.
func lacksPart(_ *chooser, n *ast.ForStmt) bool {
	return n.Cond == nil && n.Init != nil || (n.Init == nil) != (n.Post == nil)
}

func forCommaOK(_ *chooser, n *ast.ForStmt) bool { return holdsCommaOK(n.Body) }

func rangesAlone(_ *chooser, n *ast.RangeStmt) bool { return n.Key == nil }

func rangesOther(c *chooser, n *ast.RangeStmt) bool {
	_, slice := c.info.TypeOf(n.X).Underlying().(*types.Slice)
	return !slice
}

func rangeAssigns(_ *chooser, n *ast.RangeStmt) bool { return n.Tok == token.ASSIGN }

func rangeCommaOK(_ *chooser, n *ast.RangeStmt) bool { return holdsCommaOK(n.Body) }

// changesCounter reports whether the body of a loop assigns to a variable that the loop declares.
func changesCounter(c *chooser, n *ast.ForStmt) (found bool) {
	init, ok := n.Init.(*ast.AssignStmt)
	if !ok {
		return false
	}
	counts := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && c.info.Uses[id] != nil && slices.ContainsFunc(init.Lhs, func(l ast.Expr) bool {
			counter, ok := l.(*ast.Ident)
			return ok && c.info.Defs[counter] == c.info.Uses[id]
		})
	}
	ast.Inspect(n.Body, func(s ast.Node) bool {
		switch s := s.(type) {
		case *ast.AssignStmt:
			found = found || slices.ContainsFunc(s.Lhs, counts)
		case *ast.IncDecStmt:
			found = found || counts(s.X)
		}
		return !found
	})
	return found
}

// holdsCommaOK reports whether a block contains a two-value assertion or map read.
func holdsCommaOK(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		found = found || ok && commaOK(a)
		return !found
	})
	return found
}

package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// power rewrites x**2 as math.Pow(x, 2). Go reads it as x * (*2).
func (m *fixer) power(_ types.Error, path []ast.Node, _ []string) bool {
	star, ok := nearest[*ast.StarExpr](path, nil)
	if !ok || !strings.Contains(m.src, "**") {
		return false
	}
	n, ok := m.parents[star].(*ast.BinaryExpr)
	if !ok || n.Op != token.MUL || n.Y != ast.Expr(star) || m.offset(star.Pos()) != m.offset(n.OpPos)+1 {
		return false
	}
	base := n.X
	if b, ok := base.(*ast.BinaryExpr); ok { // ** binds tighter than what stands before
		base = b.Y
	}
	if u, ok := base.(*ast.UnaryExpr); ok {
		base = u.X
	}
	switch base.(type) {
	case *ast.StarExpr, *ast.BinaryExpr:
		return false
	}
	outer, ok := m.parents[n].(*ast.BinaryExpr)
	if _, again := outerOperand(outer, ok).(*ast.StarExpr); again || isWhole(m.Info.TypeOf(base)) {
		return false // a power of a power goes from right to left, and one of integers is exact
	}
	return m.fix("** is math.Pow", edit{m.offset(base.Pos()), m.offset(n.End()),
		"math.Pow(" + m.text(base) + ", " + m.text(star.X) + ")"})
}

// outerOperand returns the right operand of an expression that may be missing.
func outerOperand(b *ast.BinaryExpr, ok bool) ast.Expr {
	if !ok {
		return nil
	}
	return b.Y
}

// hat rewrites x^2 of float64 as math.Pow(x, 2). Go has ^ for the bits of integers, which binds like +.
func (m *fixer) hat(n *ast.BinaryExpr) bool {
	if n.Op != token.XOR {
		return false
	}
	base, exponent := n.X, n.Y
	for {
		b, ok := base.(*ast.BinaryExpr)
		if !ok {
			break
		}
		base = b.Y
	}
	if u, ok := base.(*ast.UnaryExpr); ok && u.Op == token.SUB {
		base = u.X
	}
	for {
		b, ok := exponent.(*ast.BinaryExpr)
		if !ok {
			break
		}
		exponent = b.X
	}
	rest := strings.TrimLeft(m.src[m.offset(exponent.End()):], " \t")
	before := strings.TrimRight(m.src[:m.offset(base.Pos())], " \t-")
	if !isFloat(m.Info.TypeOf(base)) || strings.HasPrefix(rest, "^") || strings.HasSuffix(before, "^") {
		return false // a power of a power goes from right to left
	}
	return m.fix("^ of float64 is math.Pow", edit{m.offset(base.Pos()), m.offset(exponent.End()),
		"math.Pow(" + m.text(base) + ", " + m.text(exponent) + ")"})
}

// hats rewrites the first ^ of an expression.
func (m *fixer) hats(path []ast.Node) bool {
	var whole ast.Expr
	for _, n := range path {
		x, ok := n.(ast.Expr)
		if !ok {
			break
		}
		whole = x
	}
	done := false
	if whole != nil {
		ast.Inspect(whole, func(n ast.Node) bool {
			if b, ok := n.(*ast.BinaryExpr); ok && !done {
				if x, isHat := b.X.(*ast.BinaryExpr); !isHat || x.Op != token.XOR {
					done = m.hat(b)
				}
			}
			return !done
		})
	}
	return done
}

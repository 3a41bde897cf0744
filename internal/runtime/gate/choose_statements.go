package gate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// This file has the predicates of the tables for declarations and statements.

func method(_ *chooser, n *ast.FuncDecl) bool { return n.Recv != nil }

func generic(_ *chooser, n *ast.FuncDecl) bool { return n.Type.TypeParams != nil }

func namedResults(_ *chooser, n *ast.FuncDecl) bool {
	r := n.Type.Results
	return r != nil && len(r.List) > 0 && r.List[0].Names != nil
}

// blanksOfSeveralTypes reports whether a function assigns values of several types to _, which yaegi treats as one
// variable.
func blanksOfSeveralTypes(c *chooser, n *ast.FuncDecl) (found bool) {
	var first types.Type
	ast.Inspect(n, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, l := range a.Lhs {
			if blank(l) {
				t := c.assigned(a, i)
				if first == nil {
					first = t
				}
				found = found || !types.Identical(first, t)
			}
		}
		return true
	})
	return found
}

func blank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// assigned returns the type of the value assigned to the i-th operand on the left.
func (c *chooser) assigned(n *ast.AssignStmt, i int) types.Type {
	t := c.info.TypeOf(n.Rhs[min(i, len(n.Rhs)-1)])
	if tuple, ok := t.(*types.Tuple); ok {
		return tuple.At(i).Type()
	}
	return t
}

func declaresType(_ *chooser, n *ast.GenDecl) bool { return n.Tok == token.TYPE }

func renamed(_ *chooser, n *ast.ImportSpec) bool { return n.Name != nil }

// changingPackageVar reports whether a package variable is anything but a regexp.Regexp or strings.Replacer made from
// constants. Those two do not change.
func changingPackageVar(c *chooser, n *ast.ValueSpec) bool {
	if c.fun != nil {
		return false
	}
	for _, name := range n.Names {
		v, ok := c.info.Defs[name].(*types.Var)
		if !ok {
			return false // a constant
		}
		if t := v.Type().String(); t != "*regexp.Regexp" && t != "*strings.Replacer" {
			return true
		}
	}
	return slices.ContainsFunc(n.Values, func(v ast.Expr) bool {
		call, ok := v.(*ast.CallExpr)
		return !ok || slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return !c.constant(a) })
	})
}

// severalValues reports whether a declaration in a function gives several variables a value each.
func severalValues(c *chooser, n *ast.ValueSpec) bool {
	return len(n.Names) > 1 && len(n.Values) > 1 && c.fun != nil
}

func declaresBoxed(c *chooser, n *ast.ValueSpec) bool {
	for i, v := range n.Values {
		if len(n.Names) == len(n.Values) && types.IsInterface(c.info.TypeOf(n.Names[i])) && !plainValue(v) {
			return true
		}
	}
	return false
}

func emptyBlock(_ *chooser, n *ast.BlockStmt) bool { return len(n.List) == 0 }

func constantIf(c *chooser, n *ast.IfStmt) bool { return c.constant(n.Cond) }

func switchInit(_ *chooser, n *ast.SwitchStmt) bool { return n.Init != nil }

// switchOnOther reports whether the operand of a switch is a float or not of a basic type.
func switchOnOther(c *chooser, n *ast.SwitchStmt) bool {
	if n.Tag == nil {
		return false
	}
	basic, ok := c.info.TypeOf(n.Tag).Underlying().(*types.Basic)
	return !ok || basic.Info()&types.IsFloat != 0
}

// earlyDefault reports whether a switch over conditions has a default that is not the last clause.
func earlyDefault(_ *chooser, n *ast.SwitchStmt) bool {
	if n.Tag != nil {
		return false
	}
	for i, s := range n.Body.List {
		if s.(*ast.CaseClause).List == nil && i < len(n.Body.List)-1 {
			return true
		}
	}
	return false
}

func severalConditions(_ *chooser, n *ast.SwitchStmt) bool {
	return n.Tag == nil && slices.ContainsFunc(n.Body.List,
		func(s ast.Stmt) bool { return len(s.(*ast.CaseClause).List) > 1 })
}

func constantCase(c *chooser, n *ast.SwitchStmt) bool {
	return n.Tag == nil && slices.ContainsFunc(n.Body.List,
		func(s ast.Stmt) bool { return slices.ContainsFunc(s.(*ast.CaseClause).List, c.constant) })
}

// lateBuiltin reports whether a result after the first is a call of a built-in or a conversion.
func lateBuiltin(c *chooser, n *ast.ReturnStmt) bool {
	for i, r := range n.Results {
		call, ok := r.(*ast.CallExpr)
		if ok && i > 0 && (c.info.Types[call.Fun].IsBuiltin() || c.info.Types[call.Fun].IsType()) {
			return true
		}
	}
	return false
}

// returnsBoxed reports whether a result of interface type comes from an operator that yaegi converts wrongly.
func returnsBoxed(c *chooser, n *ast.ReturnStmt) bool {
	results := c.fun.Type().(*types.Signature).Results()
	for i, r := range n.Results {
		if len(n.Results) == results.Len() && types.IsInterface(results.At(i).Type()) && !c.boxable(r) {
			return true
		}
	}
	return false
}

func countsSized(c *chooser, n *ast.IncDecStmt) bool { return !plainNumber(c.info.TypeOf(n.X)) }

func countsElsewhere(_ *chooser, n *ast.IncDecStmt) bool { return !variableOrElement(n.X) }

// commaOK reports whether an assignment is a two-value type assertion or map read.
func commaOK(n *ast.AssignStmt) bool {
	_, call := n.Rhs[0].(*ast.CallExpr)
	return len(n.Lhs) > len(n.Rhs) && !call
}

func assignsSized(c *chooser, n *ast.AssignStmt) bool {
	if n.Tok == token.ASSIGN || n.Tok == token.DEFINE {
		return false
	}
	t := c.info.TypeOf(n.Lhs[0])
	simple := slices.Contains([]token.Token{token.ADD_ASSIGN, token.SUB_ASSIGN, token.MUL_ASSIGN, token.QUO_ASSIGN,
		token.REM_ASSIGN}, n.Tok)
	return !simple || !plainNumber(t) && !isString(t)
}

func assignsSeveral(_ *chooser, n *ast.AssignStmt) bool { return len(n.Rhs) > 1 }

func assignsCommaOK(_ *chooser, n *ast.AssignStmt) bool { return n.Tok == token.ASSIGN && commaOK(n) }

// givesAway reports whether the assignment has _ on the left and anything but a variable on the right.
func givesAway(_ *chooser, n *ast.AssignStmt) bool {
	if _, variable := n.Rhs[0].(*ast.Ident); variable {
		return false
	}
	return len(n.Lhs) == len(n.Rhs) && slices.ContainsFunc(n.Lhs, blank)
}

func assignsBoxed(c *chooser, n *ast.AssignStmt) bool {
	for i, l := range n.Lhs {
		if t := c.info.TypeOf(l); len(n.Lhs) == len(n.Rhs) && t != nil && types.IsInterface(t) &&
			!plainValue(n.Rhs[i]) {
			return true
		}
	}
	return false
}

// assignsPackageVar reports whether the program assigns to a variable of the package.
func assignsPackageVar(c *chooser, n *ast.AssignStmt) bool {
	return slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool {
		id, ok := l.(*ast.Ident)
		if !ok {
			return false
		}
		v, ok := c.info.ObjectOf(id).(*types.Var)
		return ok && v.Parent() == c.pkg.Scope()
	})
}

// assignsElsewhere reports whether an operand on the left is neither a variable nor, if it is the only one, an element.
func assignsElsewhere(_ *chooser, n *ast.AssignStmt) bool {
	return slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool {
		return !variableOrElement(l) || len(n.Lhs) > 1 &&
			!variable(l)
	})
}

func variable(e ast.Expr) bool { _, ok := e.(*ast.Ident); return ok }

func variableOrElement(e ast.Expr) bool { _, ok := e.(*ast.IndexExpr); return ok || variable(e) }

// changesInput reports whether an assignment sets an element of a container that may belong to the call's input.
func changesInput(c *chooser, n *ast.AssignStmt) bool {
	return slices.ContainsFunc(n.Lhs, func(l ast.Expr) bool {
		element, ok := l.(*ast.IndexExpr)
		return ok && !c.mayChange(element.X)
	})
}

// recursive reports whether a function declared in the file can reach itself. Mentioning a function counts as calling
// it.
func recursive(info *types.Info, f *ast.File) bool {
	calls := map[types.Object][]types.Object{}
	for _, d := range f.Decls {
		fd, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(fd, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if callee, ok := info.Uses[id].(*types.Func); ok {
					calls[info.Defs[fd.Name]] = append(calls[info.Defs[fd.Name]], callee)
				}
			}
			return true
		})
	}
	const active, done = 1, 2
	state := map[types.Object]int{}
	var visit func(o types.Object) bool
	visit = func(o types.Object) bool {
		if state[o] != 0 {
			return state[o] == active
		}
		state[o] = active
		if slices.ContainsFunc(calls[o], visit) {
			return true
		}
		state[o] = done
		return false
	}
	for o := range calls {
		if visit(o) {
			return true
		}
	}
	return false
}

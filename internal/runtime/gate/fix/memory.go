package fix

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// inMemory makes Run convert a list or an object of the session's memory in place, before anything else. The program
// then finds the type that it asserts under every name. It applies only if the program asserts just this type and
// passes the memory to nobody.
func (m *fixer) inMemory(n *ast.TypeAssertExpr, like string) bool {
	member := m.memberOf(n.X)
	place := m.text(member)
	convert := "Held(" + place + ", " + like + ")"
	if strings.Contains(m.src, convert) {
		return true
	}
	ix, ok := member.(*ast.IndexExpr)
	run := m.function("Run")
	if !ok || run == nil || !m.isKept(ix, run, m.Info.TypeOf(n.Type)) {
		return false
	}
	at := m.offset(run.Body.Lbrace) + 1
	return m.useHost(fmt.Sprintf("JSON has no %s: that of the memory is converted", m.text(n.Type)),
		edit{at, at, "\nif " + place + " != nil {\n" + place + " = recurgent." + convert + "\n}\n"})
}

// isKept reports whether Run can convert a member of the memory in place: the program refers to it through Run's own
// parameter and asserts only this type.
func (m *fixer) isKept(ix *ast.IndexExpr, run *ast.FuncDecl, t types.Type) bool {
	return constantText(ix.Index) != "" && constantText(ix.Index) != report.ContextHistory && m.isMemory(ix.X) &&
		m.called(fieldsOf(run.Type.Params), fieldsOf(run.Type.Results)) &&
		m.text(ix.X) == fieldsOf(run.Type.Params)[0].name+".Context" && m.onlyAsserted(ix, t)
}

// fromStart lets a member that the memory lacks at first count as empty, if the program reads it without checking and
// also sets it. Such a program counts or collects, and would fail in every new session.
func (m *fixer) fromStart(n *ast.TypeAssertExpr, t types.Type) bool {
	ix, ok := n.X.(*ast.IndexExpr)
	as, isSet := m.parents[n].(*ast.AssignStmt)
	if !ok || !isSet || as.Tok != token.DEFINE || len(as.Lhs) != 1 || len(as.Rhs) != 1 || isName(as.Lhs[0], "_") ||
		!m.inBlock(as) || !m.isMemory(ix.X) || constantText(ix.Index) == "" || m.like(t) == "" {
		return false
	}
	sets, reads := 0, 0
	ast.Inspect(m.file, func(o ast.Node) bool {
		x, ok := o.(*ast.IndexExpr)
		if !ok || m.text(x) != m.text(ix) {
			return true
		}
		if m.isSet(x) {
			sets++
		} else {
			reads++
		}
		return true
	})
	// A program that never sets the member expects it from elsewhere.
	if sets == 0 || reads != 1 {
		return false
	}
	edits := []edit{m.after(as.Lhs[0], ", _")}
	if _, isMap := t.Underlying().(*types.Map); isMap {
		name := m.text(as.Lhs[0])
		edits = append(edits, m.after(as, "\nif "+name+" == nil {\n"+name+" = "+m.text(n.Type)+"{}\n}"))
	}
	return m.fix("the memory is empty at first", edits...)
}

// memberOf returns the member of an object that a variable is set to once, or x itself.
func (m *fixer) memberOf(x ast.Expr) ast.Expr {
	v := m.variable(x)
	def, value := m.definition(v)
	if ix, ok := value.(*ast.IndexExpr); ok && m.setOnce(v, def) {
		return ix
	}
	return x
}

// setOnce reports whether the program sets a variable only where it defines it.
func (m *fixer) setOnce(v *types.Var, def ast.Node) bool {
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.AssignStmt:
			if ast.Node(p) != def && slices.Contains(p.Lhs, ast.Expr(id)) {
				return false
			}
		case *ast.UnaryExpr:
			if p.Op == token.AND {
				return false
			}
		case *ast.RangeStmt:
			if p.X != id {
				return false
			}
		}
	}
	return v != nil
}

// isMemory reports whether an expression is call.Context.
func (m *fixer) isMemory(x ast.Expr) bool {
	s, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	owner, name := m.hostMember(s)
	return owner+"."+name == "Call.Context"
}

// onlyAsserted reports whether the program only sets and reads members of the memory, and only sets this member or
// asserts it to the type.
func (m *fixer) onlyAsserted(ix *ast.IndexExpr, t types.Type) bool {
	only := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if !ok || !m.isMemory(x) {
			return only
		}
		member, ok := m.parents[x].(*ast.IndexExpr)
		if !ok || constantText(member.Index) == "" {
			only = false
			return false
		}
		if constantText(member.Index) != constantText(ix.Index) {
			return only
		}
		switch p := m.parents[member].(type) {
		case *ast.TypeAssertExpr:
			only = p.Type != nil && types.Identical(m.Info.TypeOf(p.Type), t)
		case *ast.AssignStmt:
			only = slices.Contains(p.Lhs, ast.Expr(member)) || m.namedOnly(p, t)
		case *ast.BinaryExpr:
			only = isName(p.Y, "nil")
		default:
			only = false
		}
		return only
	})
	return only
}

// namedOnly reports whether a statement assigns a member of the memory to a variable that the program only asserts to
// the type or compares with nil.
func (m *fixer) namedOnly(as *ast.AssignStmt, t types.Type) bool {
	v := m.variable(as.Lhs[0])
	if v == nil || len(as.Rhs) != 1 || as.Tok != token.DEFINE || !m.setOnce(v, as) {
		return false
	}
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.TypeAssertExpr:
			if p.Type == nil || m.commaOK(p) || !types.Identical(m.Info.TypeOf(p.Type), t) {
				return false
			}
		case *ast.BinaryExpr:
			if !isName(p.Y, "nil") {
				return false
			}
		default:
			return false
		}
	}
	return true
}

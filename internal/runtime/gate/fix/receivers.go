package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// pointerReceiver passes the address of a variable whose methods take one: heap.Push(h, x) of a list h, and
// fmt.Fprintf(b, ...) of a builder b.
func (m *fixer) pointerReceiver(e types.Error, path []ast.Node, _ []string) bool {
	x := m.operandAt(e, path)
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || !strings.HasSuffix(strings.TrimSpace(e.Msg), "has pointer receiver)") || m.variable(x) == nil ||
		c.Fun == x || m.callee(c) == "" || !m.isOwn(m.variable(x)) {
		return false
	}
	m.alone = strings.Contains(e.Msg, "heap.Interface") // what a heap returns gets its type in the next round
	return m.fix(m.text(x)+" is changed in place: its address is passed", m.before(x, "&"))
}

// isOwn reports whether a variable begins with a value of its own: one that is declared without a value or with a
// literal. Another may be a copy, whose changes nobody sees.
func (m *fixer) isOwn(v *types.Var) bool {
	def, value := m.definition(v)
	if def == nil {
		return false
	}
	switch x := ast.Unparen(value).(type) {
	case nil:
		_, declared := def.(*ast.ValueSpec)
		return declared
	case *ast.CompositeLit:
		return true
	case *ast.CallExpr:
		return isName(x.Fun, "make") || m.Info.Types[x.Fun].IsType()
	}
	return false
}

// ofHeap gives Push and Pop of a heap the types that container/heap asks for. What the program takes from the heap gets
// the type that it has.
func (m *fixer) ofHeap(e types.Error, path []ast.Node, _ []string) bool {
	x := m.operandAt(e, path)
	if x == nil {
		return false
	}
	if m.alone = len(m.edits) > 0; m.alone {
		return true // in the next round
	}
	name, ok := m.definedType(m.Info.TypeOf(x))
	if !ok {
		return false
	}
	var push, pop *ast.FuncDecl
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Body == nil || m.receiverName(f) != name.Name() {
			continue
		}
		switch f.Name.Name {
		case "Push":
			push = f
		case "Pop":
			pop = f
		}
	}
	if push == nil || pop == nil {
		return false
	}
	m.alone = m.fix("Push takes and Pop returns any value", slices.Concat(m.pushed(push), m.poppedOf(pop, name))...)
	return m.alone
}

// receiverName returns the name of the type that a method belongs to.
func (m *fixer) receiverName(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	return m.text(typ)
}

// pushed makes Push take any, and take the element out of it.
func (m *fixer) pushed(push *ast.FuncDecl) []edit {
	params := fieldsOf(push.Type.Params)
	if len(params) != 1 || params[0].name == "" || isAnyExpr(params[0].typ) || len(fieldsOf(push.Type.Results)) > 0 {
		return nil
	}
	held := m.unused("value", "element")
	at := m.offset(push.Body.Lbrace) + 1
	return []edit{m.replace(push.Type.Params, "("+held+" any)"),
		{at, at, "\n" + params[0].name + " := " + held + ".(" + m.text(params[0].typ) + ")\n"}}
}

// poppedOf makes Pop return any, and asserts what heap.Pop, heap.Remove and the method return.
func (m *fixer) poppedOf(pop *ast.FuncDecl, of *types.TypeName) (edits []edit) {
	results := fieldsOf(pop.Type.Results)
	if len(results) != 1 || isAnyExpr(results[0].typ) || results[0].name != "" {
		return nil
	}
	typ := m.text(results[0].typ)
	edits = append(edits, m.replace(results[0].typ, "any"))
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr)
		if !ok {
			return true
		}
		taken := m.text(s) == "heap.Pop" || m.text(s) == "heap.Remove"
		if taken && len(c.Args) > 0 {
			name, own := m.definedType(m.Info.TypeOf(c.Args[0]))
			taken = own && name == of
		}
		_, asserted := m.parents[c].(*ast.TypeAssertExpr)
		_, stands := m.parents[c].(*ast.ExprStmt)
		if (taken || m.Info.Uses[s.Sel] == m.Info.Defs[pop.Name]) && !asserted && !stands {
			edits = append(edits, m.after(c, ".("+typ+")"))
		}
		return true
	})
	return edits
}

// behindPointers matches types of libraries that programs have by their addresses alone, and that nothing changes.
var behindPointers = lazy.Regexp(`\b(time\.Location|regexp\.Regexp)\b`)

// byAddress declares values of such types as pointers, which all functions return and take.
func (m *fixer) byAddress(e types.Error, _ []ast.Node, _ []string) bool {
	g := behindPointers().FindString(e.Msg)
	if m.alone = len(m.edits) > 0; m.alone {
		return true // in the next round
	}
	var edits []edit
	plain := true
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || m.text(s) != g {
			return true
		}
		switch p := m.parents[s].(type) {
		case *ast.StarExpr:
		case *ast.CompositeLit, *ast.CallExpr:
			plain = false
		case *ast.Field, *ast.ValueSpec, *ast.ArrayType, *ast.MapType:
			if v, ok := p.(*ast.ValueSpec); ok && len(v.Values) == 0 {
				plain = false // a value that is there from the beginning
			}
			edits = append(edits, m.before(s, "*"))
		default:
			plain = false
		}
		return true
	})
	m.alone = plain && m.fix(g+" is had by its address", edits...)
	return m.alone
}

// emptyOfNamed repairs b := strings.Builder, where the empty value is meant.
func (m *fixer) emptyOfNamed(x ast.Expr) bool {
	as, ok := m.parents[x].(*ast.AssignStmt)
	t := m.Info.TypeOf(x)
	if !ok || as.Tok != token.DEFINE && as.Tok != token.ASSIGN || t == nil || !isNamed(t) ||
		types.TypeString(t, nil) == "time.Time" {
		return false // the time may be that of the call
	}
	switch t.Underlying().(type) {
	case *types.Struct, *types.Slice, *types.Map:
		return m.fix("an empty value has braces", m.after(x, "{}"))
	}
	return false
}

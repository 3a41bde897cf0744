package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// ownNames turns a declared type for JSON objects or lists, to which the program asserts decoded JSON, into an alias.
func (m *fixer) ownNames() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		a, ok := n.(*ast.TypeAssertExpr)
		if !ok || a.Type == nil {
			return true
		}
		t := m.Info.TypeOf(a.Type)
		if _, json := m.isJSON(a.X); !json || t == nil || types.NewMethodSet(types.NewPointer(t)).Len() > 0 {
			return true
		}
		name, ok := m.definedType(t)
		if u := types.TypeString(t.Underlying(), nil); !ok || u != "map[string]any" && u != "[]any" {
			return true
		}
		ast.Inspect(m.file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && m.Info.Defs[spec.Name] == name && !spec.Assign.IsValid() {
				m.fix(name.Name()+" is another name of what JSON has", m.before(spec.Type, "= "))
			}
			return true
		})
		return true
	})
}

// characters reports characters of strings that Run returns, because JSON encodes them as numbers.
func (m *fixer) characters() {
	m.returned(func(x ast.Expr) {
		t := m.Info.TypeOf(x)
		if ix, ok := ast.Unparen(x).(*ast.IndexExpr); ok && (isRune(t) || isBasic(t, types.Uint8) &&
			m.bytesOfText(ix.X)) && m.Info.Types[ix.X].Value == nil {
			m.nameCharacter(x)
		}
	})
}

// nameCharacter reports a character in the place of a value.
func (m *fixer) nameCharacter(x ast.Expr) {
	m.name(x, clip(m.text(x))+" is a character, which JSON has as a number: string(x) is its text, int(x) the number")
}

// heldCharacters reports variables with characters that become members of any type.
func (m *fixer) heldCharacters() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		x, ok := n.(ast.Expr)
		if !ok || m.variable(x) == nil || !isRune(m.Info.TypeOf(x)) {
			return true
		}
		var to types.Type
		switch p := m.parents[x].(type) {
		case *ast.KeyValueExpr:
			to = m.memberType(p, x)
		case *ast.AssignStmt:
			if _, member := p.Lhs[0].(*ast.IndexExpr); member && len(p.Lhs) == 1 && p.Rhs[0] == x {
				to = m.Info.TypeOf(p.Lhs[0])
			}
		}
		if isEmptyInterface(to) {
			m.nameCharacter(x)
		}
		return true
	})
}

// cutOut spreads the rest of a list behind an element that is taken out of it: append(l[:i], l[i+1:]) of a list of any
// type would put the rest into the list as one element.
func (m *fixer) cutOut() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || !isName(c.Fun, "append") || len(c.Args) != 2 || c.Ellipsis.IsValid() {
			return true
		}
		head, ok := ast.Unparen(c.Args[0]).(*ast.SliceExpr)
		if !ok || head.Low != nil || head.High == nil {
			return true
		}
		rest, ok := ast.Unparen(c.Args[1]).(*ast.SliceExpr)
		if ok && rest.Low != nil && rest.High == nil && m.text(rest.X) == m.text(head.X) &&
			types.Identical(m.Info.TypeOf(rest), anyList) {
			m.fix("the rest of a list is appended with ...", m.after(c.Args[1], "..."))
		}
		return true
	})
}

// bytesOfText reports whether an expression is a string, its bytes, or a variable set to those. Other bytes are
// numbers.
func (m *fixer) bytesOfText(x ast.Expr) bool {
	if _, value := m.definition(m.variable(x)); value != nil {
		x = value
	}
	if c, ok := ast.Unparen(x).(*ast.CallExpr); ok && len(c.Args) == 1 && m.Info.Types[c.Fun].IsType() {
		x = c.Args[0]
	}
	return isString(m.Info.TypeOf(x))
}

// reading matches functions that parse numbers and times.
var reading = lazy.Regexp(`^(?:strconv\.(?:Atoi|Parse\w+)|time\.Parse\w*)$`)

// unreadErrors reports parse errors that nothing checks. The program would go on with a zero.
func (m *fixer) unreadErrors() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || as.Tok != token.DEFINE || len(as.Lhs) != 2 || len(as.Rhs) != 1 {
			return true
		}
		id, _ := as.Lhs[1].(*ast.Ident)
		c, ok := ast.Unparen(as.Rhs[0]).(*ast.CallExpr)
		if v, defined := m.Info.Defs[id].(*types.Var); ok && defined && id.Name != "_" && isError(v.Type()) &&
			len(m.usesOf(v)) == 0 && reading().MatchString(m.callee(c)) {
			m.name(as, id.Name+" of "+clip(m.text(c))+" is not looked at: write if "+id.Name+
				" != nil { ... }, or _ where a zero is meant then")
		}
		return true
	})
}

// sameNumber reports whether x is the expression as, or that expression converted by a helper.
func (m *fixer) sameNumber(x, as ast.Expr) bool {
	text, of := m.text(x), m.text(as)
	return text == of || strings.HasPrefix(text, "recurgent.Must("+of+",") ||
		strings.HasPrefix(text, "recurgent.As("+of+",")
}

// takesOff reports whether a statement subtracts a multiple of the divisor, such as x -= n * y.
func (m *fixer) takesOff(n ast.Node, x, y ast.Expr) bool {
	as, ok := n.(*ast.AssignStmt)
	if !ok || as.Tok != token.SUB_ASSIGN || m.text(as.Lhs[0]) != m.text(x) {
		return false
	}
	b, ok := ast.Unparen(as.Rhs[0]).(*ast.BinaryExpr)
	return ok && b.Op == token.MUL && (m.text(b.X) == m.text(y) || m.text(b.Y) == m.text(y))
}

// paddedLists reports lists that are made with a length and then appended to. They start with that many zeros.
func (m *fixer) paddedLists() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		as, ok := n.(*ast.AssignStmt)
		if !ok || as.Tok != token.DEFINE || len(as.Lhs) != 1 || len(as.Rhs) != 1 {
			return true
		}
		c, ok := as.Rhs[0].(*ast.CallExpr)
		if !ok || !isName(c.Fun, "make") || len(c.Args) != 2 || isNumber(c.Args[1], "0") {
			return true
		}
		name := m.text(as.Lhs[0])
		if strings.Contains(m.src, name+" = append("+name+",") && !strings.Contains(m.src, name+"[") {
			m.name(as, name+" has zeros before what is appended: make("+m.text(c.Args[0])+", 0, "+m.text(c.Args[1])+")")
		}
		return true
	})
}

package fix

import (
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
	"strings"
	"unicode"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// either is added to a program that has a ? b : c within an expression whose operands may both be evaluated.
const either = `func either[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}`

// A choice is an expression a ? b : c, or another one, whose text alone counts then.
type choice struct {
	text    string
	cond    string
	yes, no *choice
	last    int // the index behind its last token
}

// leaves returns the operands of which one is the value.
func (c *choice) leaves() []string {
	if c.cond == "" {
		return []string{c.text}
	}
	return slices.Concat(c.yes.leaves(), c.no.leaves())
}

// mentions reports whether a name occurs in the expression.
func (c *choice) mentions(name string) bool {
	if c.cond == "" {
		return slices.Contains(namesIn(c.text), name)
	}
	return slices.Contains(namesIn(c.cond), name) || c.yes.mentions(name) || c.no.mentions(name)
}

// namesIn returns the names and numbers in a text.
func namesIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// choiceAt reads the expression that begins at a token: it ends before a comma, a colon or a bracket at its depth.
func (m *fixer) choiceAt(list []lexeme, from int) *choice {
	end := len(list)
	for k := from; k < end; k++ {
		l := list[k]
		switch {
		case l.depth < list[from].depth:
			end = k
		case l.depth > list[from].depth || k == from:
		case l.tok == token.COMMA, l.tok == token.COLON, l.tok == token.SEMICOLON:
			end = k
		case m.src[l.from:l.to] == "?" || l.tok == token.ILLEGAL && m.src[l.from] == '?':
			yes := m.choiceAfter(list, k)
			if yes == nil || yes.last >= len(list) || list[yes.last].tok != token.COLON {
				return nil
			}
			no := m.choiceAfter(list, yes.last)
			if no == nil {
				return nil
			}
			return &choice{cond: m.part(list, from, k), yes: yes, no: no, last: no.last}
		}
	}
	text := m.part(list, from, end)
	if text == "" {
		return nil
	}
	return &choice{text: text, last: end}
}

// choiceAfter reads the operand behind a token, which stands at the same depth.
func (m *fixer) choiceAfter(list []lexeme, i int) *choice {
	if i+1 >= len(list) || list[i+1].depth < list[i].depth {
		return nil
	}
	return m.choiceAt(list, i+1)
}

// beginsChoice are the tokens before an expression.
var beginsChoice = []token.Token{token.COMMA, token.COLON, token.ASSIGN, token.DEFINE, token.ADD_ASSIGN,
	token.SUB_ASSIGN, token.MUL_ASSIGN, token.RETURN, token.IF}

// settable matches what a statement sets, up to its operator.
var settable = lazy.Regexp(`^(?:var[ \t]+)?([\pL_][^()"` + "`" + `:=+*-]*?)[ \t]*(:=|=|\+=|-=|\*=)$`)

// conditional rewrites a ? b : c: by an if, where it is all that a statement sets or returns, or else by a function.
func (m *fixer) conditional(e *scanner.Error) bool {
	if !strings.HasPrefix(e.Msg, "illegal character U+003F") {
		return false
	}
	list, at := m.lexemes(e.Pos.Offset)
	if at < 1 {
		return false
	}
	first := at
	for first > 0 && (list[first-1].depth > list[at].depth || list[first-1].depth == list[at].depth &&
		!slices.Contains(beginsChoice, list[first-1].tok)) {
		first--
	}
	c := m.choiceAt(list, first)
	if c == nil || c.cond == "" {
		return false
	}
	const note = "Go has no a ? b : c"
	before, behind := m.part(list, 0, first), m.part(list, c.last, len(list))
	if before == "return" && (behind == "" || behind == ", nil") {
		return m.fix(note, edit{list[0].from, list[len(list)-1].to, returned(c, behind)})
	}
	if g := settable().FindStringSubmatch(before); g != nil && behind == "" {
		text := set(c, g[1]+" "+g[2]+" ")
		if g[2] == ":=" || strings.HasPrefix(before, "var") {
			text = m.defined(c, g[1])
		}
		if text != "" {
			return m.fix(note, edit{list[0].from, list[len(list)-1].to, text})
		}
	}
	text := m.eitherOf(c)
	if text == "" || strings.Contains(m.src, "either") && !strings.Contains(m.src, either) {
		return false
	}
	edits := []edit{{list[first].from, list[c.last-1].to, text}}
	if !strings.Contains(m.src, either) {
		edits = append(edits, m.end(either))
	}
	return m.fix(note, edits...)
}

// returned returns the statements that return the value.
func returned(c *choice, behind string) string {
	if c.cond == "" {
		return "return " + c.text + behind
	}
	return "if " + c.cond + " {\n" + returned(c.yes, behind) + "\n}\n" + returned(c.no, behind)
}

// set returns the statement that sets a variable to the value. to is its beginning.
func set(c *choice, to string) string {
	if c.cond == "" {
		return to + c.text
	}
	return "if " + c.cond + " {\n" + set(c.yes, to) + "\n} else {\n" + set(c.no, to) + "\n}"
}

// defined returns the statements that define a variable by one of the operands, and then set it to the others. That
// operand is evaluated even where another one is the value, so that it must not fail. It returns "" if there is none.
func (m *fixer) defined(c *choice, name string) string {
	if strings.ContainsAny(name, " ,.[") || c.mentions(name) {
		return "" // the operands mean a variable of that name that is there already
	}
	rest := *c
	switch last := c.no.leaves(); {
	case c.no.cond == "" && m.harmless(c.no.text) && c.no.text != "nil":
		return name + " := " + c.no.text + "\nif " + c.cond + " {\n" + set(c.yes, name+" = ") + "\n}"
	case c.yes.cond == "" && m.harmless(c.yes.text) && c.yes.text != "nil":
		return name + " := " + c.yes.text + "\nif !(" + c.cond + ") {\n" + set(c.no, name+" = ") + "\n}"
	case m.harmless(last[len(last)-1]) && last[len(last)-1] != "nil":
		return name + " := " + last[len(last)-1] + "\n" + set(&rest, name+" = ")
	}
	return ""
}

// eitherOf returns the call of either for an expression whose operands cannot fail, or "".
func (m *fixer) eitherOf(c *choice) string {
	if c.cond == "" {
		if !m.harmless(c.text) {
			return ""
		}
		return c.text
	}
	yes, no := m.eitherOf(c.yes), m.eitherOf(c.no)
	if yes == "" || no == "" {
		return ""
	}
	typ := ""
	if slices.ContainsFunc(c.leaves(), func(s string) bool { return spellings[s] == "nil" || s == "nil" }) {
		typ = "[any]"
	}
	return "either" + typ + "(" + c.cond + ", " + yes + ", " + no + ")"
}

// safe matches functions that have no effect and do not panic.
var safe = lazy.Regexp(
	`^(?:len|float64|int|string|min|max|strconv\.(?:Itoa|Quote|FormatInt)|fmt\.Sprintf?|math\.\w+|strings\.(?:ToUpper|ToLower|TrimSpace|Title))$`)

// harmless reports whether evaluating an expression neither fails nor has an effect.
func (m *fixer) harmless(text string) bool {
	_, file, err := m.checker.Parse("package tool\nvar _ = " + text)
	if err != nil || len(file.Decls) != 1 {
		return false
	}
	good := true
	ast.Inspect(file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0], func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.Ident, *ast.BasicLit, *ast.ParenExpr:
		case *ast.UnaryExpr:
			good = good && (n.Op == token.SUB || n.Op == token.NOT)
		case *ast.BinaryExpr:
			good = good && n.Op != token.QUO && n.Op != token.REM && n.Op != token.SHL && n.Op != token.SHR
		case *ast.CallExpr:
			var fun []string
			ast.Inspect(n.Fun, func(x ast.Node) bool {
				if id, ok := x.(*ast.Ident); ok {
					fun = append(fun, id.Name)
				}
				return true
			})
			good = good && safe().MatchString(strings.Join(fun, "."))
			for _, a := range n.Args {
				good = good && m.harmlessArgument(a)
			}
			return false
		default:
			good = false
		}
		return good
	})
	return good
}

// harmlessArgument is harmless of an argument of a function: a name or a literal.
func (m *fixer) harmlessArgument(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.BinaryExpr:
		return x.Op != token.QUO && x.Op != token.REM && x.Op != token.SHL && x.Op != token.SHR &&
			m.harmlessArgument(x.X) && m.harmlessArgument(x.Y)
	case *ast.ParenExpr:
		return m.harmlessArgument(x.X)
	}
	return false
}

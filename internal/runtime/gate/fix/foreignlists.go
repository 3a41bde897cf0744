package fix

import (
	"go/scanner"
	"go/token"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

var (
	membership = lazy.Regexp(`^(?:not[ \t]+)?in\b`)
	threefold  = lazy.Regexp(`(?:==|!=)$`)
)

// beforeMember are the tokens that may stand before x in y: an operator before it would bind tighter.
var beforeMember = []token.Token{token.LPAREN, token.LAND, token.LOR, token.COMMA, token.DEFINE, token.ASSIGN,
	token.RETURN, token.CASE, token.IF, token.COLON}

// member rewrites x in y and x not in y within an expression.
func (m *fixer) member(e *scanner.Error) bool {
	at := e.Pos.Offset
	word := membership().FindString(m.src[at:])
	list, i := m.lexemes(at)
	if word == "" || i < 1 {
		return false
	}
	behind := i + len(strings.Fields(word))
	from, to := primaryBefore(list, i), primaryAfter(list, behind)
	if from < 1 || to <= behind || !slices.Contains(beforeMember, list[from-1].tok) ||
		to < len(list) && !endsOperand(list[to].tok) && list[to].tok != token.LAND && list[to].tok != token.LOR {
		return false
	}
	for _, l := range list[:from] {
		if l.tok == token.FOR {
			return false // a loop
		}
	}
	x, y := m.part(list, from, i), m.part(list, behind, to)
	call := y + ".has(" + x + ")"
	switch list[behind].tok {
	case token.STRING:
		call = "strings.Contains(" + y + ", " + x + ")"
	case token.LBRACK, token.LPAREN, token.LBRACE:
		typ, items := m.listOf(list, behind)
		if typ == "" || typ == "any" || list[behind].tok == token.LPAREN && closing(list, behind) == behind+2 {
			return false // ("a") is a list or a text
		}
		call = "slices.Contains([]" + typ + "{" + items + "}, " + x + ")"
	}
	if strings.HasPrefix(word, "not") {
		call = "!" + call
	}
	return m.fix("x in y is a call in Go", edit{list[from].from, list[to-1].to, call})
}

// listOf returns the type of the elements of a list of another language, whose bracket is at i, and their text. The
// type is any for elements that are not literals of one kind, and "" if the bracket holds something else.
func (m *fixer) listOf(list []lexeme, i int) (typ, items string) {
	end := closing(list, i)
	if end < 0 {
		return "", ""
	}
	for k := i + 1; k < end; {
		to, kind := k+1, ""
		switch list[k].tok {
		case token.STRING:
			kind = "string"
		case token.INT:
			kind = "int"
		case token.FLOAT:
			kind = "float64"
		case token.LBRACK:
			inner, _ := m.listOf(list, k)
			if to = closing(list, k) + 1; inner == "" || inner == "any" {
				return "", ""
			}
			kind = "[]" + inner
		case token.SUB:
			to = k + 2
			kind = map[token.Token]string{token.INT: "int", token.FLOAT: "float64"}[list[k+1].tok]
			if kind == "" {
				to, kind = primaryAfter(list, k+1), "any"
			}
		default:
			to, kind = primaryAfter(list, k), "any"
		}
		if to <= k || to > end || to < end && list[to].tok != token.COMMA {
			return "", ""
		}
		typ = ofBoth(typ, kind)
		k = to + 1
	}
	if typ == "" {
		return "any", ""
	}
	last := list[i].to
	for k := i + 1; k <= end; k++ {
		items += m.src[last:list[k].from]
		last = list[k].to
		switch text := m.src[list[k].from:last]; {
		case k == end:
		case strings.HasPrefix(typ, "[]") && text == "[":
			items += "{"
		case strings.HasPrefix(typ, "[]") && text == "]":
			items += "}"
		default:
			items += text
		}
	}
	return typ, items
}

// ofBoth returns the type of elements of two kinds.
func ofBoth(a, b string) string {
	within := a[:strings.LastIndexByte(a, ']')+1]
	switch {
	case a == "" || a == b:
		return b
	case a == within+"int" && b == within+"float64", a == within+"float64" && b == within+"int":
		return within + "float64"
	}
	return "any"
}

// beforeList are the tokens before an operand.
var beforeList = []token.Token{token.RETURN, token.DEFINE, token.ASSIGN, token.LPAREN, token.COMMA, token.COLON,
	token.RANGE}

// ofType are the tokens with which a type goes on behind its brackets.
var ofType = []token.Token{token.IDENT, token.LBRACK, token.MUL, token.MAP, token.FUNC, token.STRUCT, token.INTERFACE,
	token.CHAN, token.LPAREN, token.PERIOD, token.ARROW}

// foreignList gives a list of another language its type: return [], nil and x := ["a", "b"].
func (m *fixer) foreignList(e *scanner.Error) bool {
	list, _ := m.lexemes(e.Pos.Offset)
	last := -1 // of the list before
	for i, l := range list {
		if i <= last || l.tok != token.LBRACK || i == 0 || !slices.Contains(beforeList, list[i-1].tok) {
			continue
		}
		end := closing(list, i)
		if end < 0 || end+1 < len(list) && (slices.Contains(ofType, list[end+1].tok) ||
			list[end+1].tok == token.LBRACE && list[i-1].tok != token.RANGE) {
			continue
		}
		last = end
		typ, items := m.listOf(list, i)
		if typ == "" || typ == "any" && items != "" && list[i-1].tok != token.RETURN && list[i-1].tok != token.COLON {
			continue
		}
		return m.fix("a list has its type before it", edit{l.from, list[end].to, "[]" + typ + "{" + items + "}"})
	}
	return false
}

// foreignEqual repairs === and !==, and the = of a condition.
func (m *fixer) foreignEqual(e *scanner.Error) bool {
	at := e.Pos.Offset
	if strings.HasPrefix(m.src[at:], "=") && threefold().MatchString(m.src[:at]) {
		return m.fix("Go compares with == and !=", edit{at, at + 1, ""})
	}
	if !strings.HasPrefix(e.Msg, "expected boolean expression, found assignment") &&
		!strings.HasPrefix(e.Msg, "cannot use assignment") {
		return false
	}
	list, _ := m.lexemes(at)
	begin := slices.IndexFunc(list, func(l lexeme) bool { return l.tok == token.IF })
	if begin < 0 {
		return false
	}
	for i := begin; i < len(list); i++ {
		if list[i].tok == token.SEMICOLON {
			begin = i // before it, a statement sets something
		}
	}
	for i := begin + 1; i+1 < len(list); i++ {
		if l := list[i]; l.tok == token.ASSIGN && l.depth == list[begin].depth {
			return m.compares(list, i) && m.fix("a condition compares with ==", edit{l.from, l.to, "=="})
		}
	}
	return false
}

// compares reports whether the = at i means ==: it stands before a literal, or behind a call, which cannot be set.
// Other languages set a variable in a condition to the result of a call.
func (m *fixer) compares(list []lexeme, i int) bool {
	switch list[i+1].tok {
	case token.STRING, token.CHAR, token.INT, token.FLOAT, token.SUB:
		return true
	case token.IDENT:
		word := m.src[list[i+1].from:list[i+1].to]
		if word == "nil" || word == "true" || word == "false" || spellings[word] == "nil" {
			return true
		}
	}
	return list[i-1].tok == token.RPAREN
}

package fix

import (
	"go/scanner"
	"go/token"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// stepWithin takes a step out of an index: list[i++] = x sets list[i] and then steps.
func (m *fixer) stepWithin(e *scanner.Error) bool {
	list, at := m.lexemes(e.Pos.Offset)
	if at < 2 || list[at].tok != token.INC || list[at-1].tok != token.IDENT || list[at-2].tok != token.LBRACK ||
		at+1 >= len(list) || list[at+1].tok != token.RBRACK {
		return false
	}
	name, count := m.src[list[at-1].from:list[at-1].to], 0
	for _, l := range list {
		switch {
		case l.tok == token.IDENT && m.src[l.from:l.to] == name:
			count++
		case l.tok == token.IF, l.tok == token.FOR, l.tok == token.RETURN, l.tok == token.LAND, l.tok == token.LOR,
			l.tok == token.LBRACE, l.tok == token.SEMICOLON, l.tok == token.CASE:
			return false
		}
	}
	end := list[len(list)-1].to
	return count == 1 && m.fix("a step is a statement of its own", edit{list[at].from, list[at].to, ""},
		edit{end, end, "\n" + name + "++"})
}

// pairInParentheses leaves out the parentheses of return (value, nil).
func (m *fixer) pairInParentheses(e *scanner.Error) bool {
	list, at := m.lexemes(e.Pos.Offset)
	if at < 3 || list[0].tok != token.RETURN || list[1].tok != token.LPAREN || list[at].tok != token.COMMA ||
		list[at].depth != list[1].depth+1 || closing(list, 1) != len(list)-1 {
		return false
	}
	end := list[len(list)-1]
	return m.fix("results stand without parentheses", edit{list[1].from, list[1].to, ""}, edit{end.from, end.to, ""})
}

// untypedMap gives map{...} its types.
func (m *fixer) untypedMap(e *scanner.Error) bool {
	at := e.Pos.Offset
	return strings.HasPrefix(e.Msg, "expected '[', found '{'") && strings.HasSuffix(m.src[:at], "map") &&
		m.fix("an object has its type before it", edit{at, at, "[string]any"})
}

// backwards rewrites s[::-1].
func (m *fixer) backwards(e *scanner.Error) bool {
	line, begin := m.lineAt(e)
	g := reversedPart().FindStringSubmatchIndex(line)
	return g != nil && m.fix("a text or a list is reversed by a function", edit{begin + g[2], begin + g[3], ".reversed()"})
}

var (
	reversedPart = lazy.Regexp(`[\pL\d_)\]](\[[ \t]*:[ \t]*:[ \t]*-1[ \t]*\])`)
	// formatText matches a text in which names in braces stand for values. placeIn matches such a place.
	formatText = lazy.Regexp(`\bf("(?:[^"\\\n]|\\.)*")`)
	placeIn    = lazy.Regexp(`\{([\pL_][\pL\d_.]*(?:\[[^\[\]{}"]*\]|\([^(){}"]*\))?)(?::([0 ]?\d*(?:\.\d+)?[dfsx]?))?\}`)
)

// interpolated rewrites f"..." with fmt.Sprintf.
func (m *fixer) interpolated(e *scanner.Error) bool {
	at := e.Pos.Offset
	if at < 1 || !strings.HasPrefix(m.src[at:], `"`) || m.src[at-1] != 'f' {
		return false
	}
	g := formatText().FindStringSubmatchIndex(m.src[at-1:])
	if g == nil || g[0] != 0 {
		return false
	}
	text, args := strings.ReplaceAll(m.src[at:at-1+g[3]], "%", "%%"), ""
	text = placeIn().ReplaceAllStringFunc(text, func(s string) string {
		part := placeIn().FindStringSubmatch(s)
		if part[2] == "" { // str knows values whose text is certain
			args += ", str(" + part[1] + ")"
			return "%s"
		}
		args += ", " + part[1]
		switch {
		case strings.HasSuffix(part[2], "s"):
			return "%" + part[2]
		case strings.Contains("dfx", part[2][len(part[2])-1:]):
			return "%" + part[2]
		}
		return s
	})
	if args == "" || strings.ContainsAny(text, "{}") {
		return false
	}
	return m.fix("a text with values in it is fmt.Sprintf", edit{at - 1, at - 1 + g[1], "fmt.Sprintf(" + text + args + ")"})
}

// absent matches a ?? b.
var absent = lazy.Regexp(`^\?\?`)

// otherwise rewrites a ?? b, the value for one that is missing.
func (m *fixer) otherwise(e *scanner.Error) bool {
	if !absent().MatchString(m.src[e.Pos.Offset:]) {
		return false
	}
	list, at := m.lexemes(e.Pos.Offset)
	if at < 1 {
		return false
	}
	// What an operator beside it binds differs between languages.
	from, to := primaryBefore(list, at), primaryAfter(list, at+2)
	if from < 1 || to <= at+2 || !slices.Contains(beginsChoice, list[from-1].tok) && !opens(list[from-1].tok) ||
		to < len(list) && !endsOperand(list[to].tok) && !absent().MatchString(m.src[list[to].from:]) {
		return false
	}
	return m.fix("a value for a missing one is recurgent.Or", edit{list[from].from, list[to-1].to,
		"recurgent.Or(" + m.part(list, from, at) + ", " + m.part(list, at+2, to) + ")"})
}

package fix

import (
	"errors"
	"go/ast"
	"go/scanner"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// syntax repairs the first syntax error and missing commas. Errors after the first are usually caused by it.
func (m *fixer) syntax(err error) {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return
	}
	for i, e := range list {
		const comma = "missing ',' before newline"
		if e.Pos.Offset > len(m.src) || i > 0 && !(strings.HasPrefix(e.Msg, comma) &&
			strings.HasPrefix(list[0].Msg, comma)) {
			continue
		}
		for _, rule := range []func(*scanner.Error) bool{m.comma, m.foreignLine, m.foreignWord, m.member,
			m.foreignEqual, m.foreignList, m.stepWithin, m.pairInParentheses, m.untypedMap, m.backwards, m.interpolated,
			m.unconstrained, m.nested, m.brokenLine, m.prefixStep, m.escape, m.lastBrace} {
			if rule(e) {
				break
			}
		}
	}
}

// comma adds a missing comma at the end of a line in a literal or an argument list.
func (m *fixer) comma(e *scanner.Error) bool {
	return strings.HasPrefix(e.Msg, "missing ',' before newline") &&
		m.fix("a comma was missing at the end of the line", edit{e.Pos.Offset, e.Pos.Offset, ","})
}

// lineAt returns the line of an error and its offset.
func (m *fixer) lineAt(e *scanner.Error) (string, int) {
	begin := strings.LastIndexByte(m.src[:e.Pos.Offset], '\n') + 1
	line, _, _ := strings.Cut(m.src[begin:], "\n")
	return line, begin
}

var (
	// openBrace matches a statement whose brace is on the next line, elseBrace an if whose else is.
	openBrace = lazy.Regexp(`(?m)^[ \t]*(?:func|if|for|switch|select|\}?[ \t]*else|type)\b[^\n]*[^{};,\s]([ \t\r]*\n[ \t]*)\{`)
	elseBrace = lazy.Regexp(`\}([ \t\r]*\n[ \t]*)$`)
)

// brokenLine joins lines that Go requires to be one: a statement and its brace, or the end of an if and its else.
func (m *fixer) brokenLine(e *scanner.Error) bool {
	if strings.Contains(e.Msg, "found 'else'") || strings.Contains(e.Msg, "else must be") {
		if g := elseBrace().FindStringSubmatchIndex(m.src[:e.Pos.Offset]); g != nil {
			return m.fix("else stands behind the brace", edit{g[2], g[3], " "})
		}
	}
	_, begin := m.lineAt(e)
	begin = strings.LastIndexByte(m.src[:max(0, begin-1)], '\n') + 1
	if !strings.Contains(e.Msg, "newline") && !strings.Contains(e.Msg, "{") {
		return false
	}
	g := openBrace().FindStringSubmatchIndex(m.src[begin:])
	if g == nil || strings.Count(m.src[begin:begin+g[0]], "\n") > 2 {
		return false
	}
	return m.fix("the brace stands on the line that it belongs to", edit{begin + g[2], begin + g[3], " "})
}

// namedFunction matches a function declaration, which is not allowed within a function.
var namedFunction = lazy.Regexp(`^\s*func (\w+)\(`)

// nested turns a function declared inside another one into a variable.
func (m *fixer) nested(e *scanner.Error) bool {
	line, begin := m.lineAt(e)
	g := namedFunction().FindStringSubmatchIndex(line)
	if g == nil || !strings.HasPrefix(e.Msg, "expected '('") || strings.Count(m.src, "func "+line[g[2]:g[3]]+"(") > 1 {
		return false
	}
	return m.fix("a function within one is a variable", edit{begin + g[2] - len("func "), begin + g[3],
		line[g[2]:g[3]] + " := func"})
}

// lastBrace adds the missing last brace of a text that ends inside its last function.
func (m *fixer) lastBrace(e *scanner.Error) bool {
	text := strings.TrimRight(m.src, " \t\r\n")
	line := text[strings.LastIndexByte(text, '\n')+1:]
	if !strings.HasPrefix(e.Msg, "expected '}', found 'EOF'") || line == "" || line[0] != '\t' && line[0] != ' ' {
		return false
	}
	_, file, err := m.checker.Parse(text + "\n}\n")
	if err != nil || len(file.Decls) == 0 {
		return false
	}
	f, ok := file.Decls[len(file.Decls)-1].(*ast.FuncDecl)
	if !ok || f.Body == nil || len(f.Body.List) == 0 {
		return false
	}
	if _, ok := f.Body.List[len(
		f.Body.List)-1].(*ast.ReturnStmt); !ok || strings.HasPrefix(strings.TrimPrefix(line, "\t"), "\t") ||
		strings.HasPrefix(line, "     ") {
		return false // the text is cut off
	}
	return m.fix("the last brace was missing", edit{len(text), len(m.src), "\n}\n"})
}

// prefixed matches a statement such as ++i.
var prefixed = lazy.Regexp(`^(\+\+|--)([\pL_][\pL\d_]*)[ \t]*(?:\r?\n|\{|;|\})`)

// prefixStep rewrites the statement ++i as i++.
func (m *fixer) prefixStep(e *scanner.Error) bool {
	g := prefixed().FindStringSubmatchIndex(m.src[e.Pos.Offset:])
	before := strings.TrimRight(m.src[:e.Pos.Offset], " \t")
	if g == nil || before != "" && !strings.HasSuffix(before, "\n") && !strings.HasSuffix(before, ";") &&
		!strings.HasSuffix(before, "{") {
		return false
	}
	step, name := m.src[e.Pos.Offset+g[2]:e.Pos.Offset+g[3]], m.src[e.Pos.Offset+g[4]:e.Pos.Offset+g[5]]
	return m.fix("the step stands behind the variable", edit{e.Pos.Offset, e.Pos.Offset + g[5], name + step})
}

var (
	pattern   = lazy.Regexp(`\bregexp\.(?:Must)?(?:Compile|MatchString)\(("(?:[^"\\]|\\.)*")`)
	backslash = lazy.Regexp(`\\.`)
	// textEscape matches an escape with the same meaning in strings and patterns, or with none in patterns.
	textEscape = lazy.Regexp(`^\\[\\"afnrtvxuU0-7]`)
)

// boundaries doubles the backslash of \b in a regular expression. No pattern searches for a backspace.
func (m *fixer) boundaries() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 || !strings.HasPrefix(m.callee(c), "regexp.") || m.callee(c) == "regexp.QuoteMeta" {
			return true
		}
		x := c.Args[0]
		if v := m.variable(x); v != nil {
			if def, value := m.definition(v); value != nil && m.setOnce(v, def) {
				x = value
			}
		}
		if l, ok := x.(*ast.BasicLit); ok && strings.HasPrefix(l.Value, `"`) &&
			strings.Contains(constantText(l), "\b") {
			text := backslash().ReplaceAllStringFunc(l.Value,
				func(s string) string { return strings.Replace(s, `\b`, `\\b`, 1) })
			m.fix("a backslash of a regular expression stands twice", m.replace(l, text))
		}
		return true
	})
}

// usedPattern matches an assignment of a string literal to a variable.
var usedPattern = lazy.Regexp(`([\pL_][\pL\d_]*)[ \t]*:?=[ \t]*("(?:[^"\\]|\\.)*")`)

// patternsIn returns the positions of string literals in a line that are regular expressions.
func (m *fixer) patternsIn(line string) (out [][]int) {
	for _, g := range pattern().FindAllStringSubmatchIndex(line, -1) {
		out = append(out, g[2:4])
	}
	for _, g := range usedPattern().FindAllStringSubmatchIndex(line, -1) {
		for _, fun := range []string{"Compile(", "MustCompile(", "MatchString("} {
			if call := "regexp." + fun + line[g[2]:g[3]]; strings.Contains(m.src, call+")") ||
				strings.Contains(m.src, call+",") {
				out = append(out, g[4:6])
			}
		}
	}
	return out
}

// escape doubles the backslash of character classes in a regular expression, as in "\b\d".
func (m *fixer) escape(e *scanner.Error) bool {
	line, begin := m.lineAt(e)
	for _, g := range m.patternsIn(line) {
		if at := e.Pos.Offset - begin; strings.HasPrefix(e.Msg, "unknown escape") && g[0] < at && at < g[1] {
			text := backslash().ReplaceAllStringFunc(line[g[0]:g[1]], func(s string) string {
				if textEscape().MatchString(s) {
					return s
				}
				return "\\" + s
			})
			return m.fix("a backslash of a regular expression stands twice", edit{begin + g[0], begin + g[1], text})
		}
	}
	return false
}

package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// layouts repairs layouts of times in another notation. Such a layout contains no element that Go knows, so Go would
// print and parse it literally.
func (m *fixer) layouts() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 || m.checker.Spent() || !m.takesLayout(c) {
			return true
		}
		lit := m.literal(c.Args[0])
		if lit == nil {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if to := goLayout(text); err == nil && to != "" {
			m.fix("the layout of a time is an example: "+clip(to), m.replace(lit, strconv.Quote(to)))
		}
		return true
	})
}

// takesLayout reports whether the first argument of a call is the layout of a time.
func (m *fixer) takesLayout(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	f, ok := m.Info.Uses[s.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != "time" {
		return false
	}
	switch f.FullName() {
	case "time.Parse", "time.ParseInLocation", "(time.Time).Format":
		return true
	}
	return false
}

// literal returns the string literal of an expression, or of a constant or variable that is set once and used only as a
// layout. It returns nil otherwise.
func (m *fixer) literal(x ast.Expr) *ast.BasicLit {
	if lit, ok := ast.Unparen(x).(*ast.BasicLit); ok {
		return lit
	}
	id, ok := ast.Unparen(x).(*ast.Ident)
	if !ok {
		return nil
	}
	obj := m.Info.ObjectOf(id)
	var lit *ast.BasicLit
	ast.Inspect(m.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if g, ok := m.parents[n].(*ast.GenDecl); ok && len(n.Names) == 1 && len(n.Values) == 1 &&
				m.Info.Defs[n.Names[0]] == obj && !repeatsValues(g) {
				lit, _ = n.Values[0].(*ast.BasicLit)
			}
		case *ast.AssignStmt:
			if l, ok := n.Lhs[0].(*ast.Ident); ok && n.Tok == token.DEFINE && len(n.Lhs) == 1 && m.Info.Defs[l] == obj {
				lit, _ = n.Rhs[0].(*ast.BasicLit)
			}
		}
		return lit == nil
	})
	for _, use := range m.usesOf(obj) {
		if c, ok := m.parents[use].(*ast.CallExpr); !ok || c.Args[0] != ast.Expr(use) || !m.takesLayout(c) {
			return nil
		}
	}
	return lit
}

var (
	// letterPart and letters are for dates in letters, as in yyyy-MM-dd; percents is for the notation of strftime.
	letterPart = lazy.Regexp(`^(?:YYYY|yyyy|MMMM|MMM|MM|DD|dd|HH|mm|ss|SS)`)
	letters    = map[string]string{"YYYY": "2006", "yyyy": "2006", "MMMM": "January", "MMM": "Jan", "DD": "02",
		"dd": "02", "HH": "15", "ss": "05", "SS": "05"}
	percents = map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'B': "January",
		'b': "Jan", 'A': "Monday", 'a': "Mon", 'y': "06", 'I': "03", 'p': "PM", 'F': "2006-01-02", 'T': "15:04:05"}
)

// repeatsValues reports whether a constant declaration has a line that repeats the value before it.
func repeatsValues(g *ast.GenDecl) bool {
	return g.Tok == token.CONST && slices.ContainsFunc(g.Specs,
		func(s ast.Spec) bool { return len(s.(*ast.ValueSpec).Values) == 0 })
}

// unclear matches layouts that may mean more than their letters: quoted text, digits, zones, fractions.
var unclear = lazy.Regexp(`['"\[\]\d]|[yYdDHms]Z|SSS`)

// goLayout translates a layout of another notation. It returns "" for any other text, for Go layouts, and for unknown,
// repeated or ambiguous parts.
func goLayout(text string) string {
	// A text that Format changes already has elements of a Go layout.
	if text == "" || unclear().MatchString(text) || time.Date(1999, 12, 30, 21, 47, 58, 0,
		time.UTC).Format(text) != text {
		return ""
	}
	var b strings.Builder
	last, seen := "", map[string]bool{}
	for i := 0; i < len(text); {
		part, to := "", ""
		switch c := text[i]; {
		case c == '%' && i+1 < len(text):
			part, to = text[i:i+2], percents[text[i+1]]
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' && c != 'T':
			part = letterPart().FindString(text[i:])
			to = letters[part]
			if part == "mm" || part == "MM" {
				to = monthOrMinute(last, text[i+2:])
				if to == "01" && strings.Contains(strings.ToLower(text), "ss") && !strings.Contains(text, "HH") {
					return "" // mm with ss but without HH means minutes
				}
			}
			last = part
		default:
			b.WriteByte(c)
			i++
			continue
		}
		if to == "" || seen[to] {
			return ""
		}
		seen[to] = true
		b.WriteString(to)
		i += len(part)
	}
	if len(seen) < 2 {
		return ""
	}
	return b.String()
}

// monthOrMinute returns Go's element for MM or mm, judging by what is before and after it, because people use either
// for both. It returns "" if that is not clear.
func monthOrMinute(before, behind string) string {
	switch before {
	case "HH":
		return "04"
	case "YYYY", "yyyy", "DD", "dd":
		if !strings.HasPrefix(behind, ":") {
			return "01"
		}
	case "":
		if len(behind) > 2 && strings.EqualFold(behind[1:3], "dd") {
			return "01"
		}
	}
	return ""
}

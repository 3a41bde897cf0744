package fix

import (
	"go/ast"
	"go/types"
	"strconv"
	"strings"
	"time"
)

// spans maps methods of times in other languages, in lower case, to the call that adds that much: of % whole units.
var spans = map[string]string{"adddays": "AddDate(0, 0, %)", "plusdays": "AddDate(0, 0, %)",
	"minusdays": "AddDate(0, 0, -(%))", "subtractdays": "AddDate(0, 0, -(%))", "addweeks": "AddDate(0, 0, 7*(%))",
	"plusweeks": "AddDate(0, 0, 7*(%))", "addhours": "Add(time.Duration(%) * time.Hour)",
	"plushours": "Add(time.Duration(%) * time.Hour)", "addminutes": "Add(time.Duration(%) * time.Minute)",
	"plusminutes": "Add(time.Duration(%) * time.Minute)", "addseconds": "Add(time.Duration(%) * time.Second)",
	"plusseconds": "Add(time.Duration(%) * time.Second)"}

// timeMethods maps methods that times and durations have in other languages to those of Go.
var timeMethods = map[string]string{"isbefore": "Before", "isafter": "After", "plus": "Add", "isequal": "Equal",
	"totalminutes": "Minutes", "totalhours": "Hours", "totalseconds": "Seconds"}

// timeMethod repairs methods of times and durations that Go has under another name, or as another call.
func (m *fixer) timeMethod(s *ast.SelectorExpr, t types.Type, call *ast.CallExpr) bool {
	name := types.TypeString(t, nil)
	if name != "time.Time" && name != "time.Duration" {
		return false
	}
	method := plainName(s.Sel.Name)
	if call != nil && (m.spanMethod(s, name, call) || m.shownTime(s, name, call) ||
		method == "strftime" && name == "time.Time" && m.strftime(s, call)) {
		return true
	}
	to := timeMethods[method]
	if to == "" {
		return false
	}
	has, _, _ := types.LookupFieldOrMethod(t, true, m.Pkg, to)
	if has == nil {
		return false
	}
	after := ""
	if sig, ok := has.Type().(*types.Signature); ok && sig.Params().Len() == 0 && call == nil {
		after = "()"
	}
	return m.fix(s.Sel.Name+" is "+to, m.replace(s.Sel, to+after))
}

// spanMethod repairs methods that add a number of units to a time, or subtract something from it.
func (m *fixer) spanMethod(s *ast.SelectorExpr, name string, call *ast.CallExpr) bool {
	if name != "time.Time" || len(call.Args) != 1 {
		return false
	}
	method := plainName(s.Sel.Name)
	if of := m.Info.TypeOf(call.Args[0]); spans[method] != "" && isWhole(of) && !isNamed(of) {
		return m.fix("a time has no "+s.Sel.Name, edit{m.offset(s.Sel.Pos()), m.offset(call.End()),
			strings.Replace(spans[method], "%", m.text(call.Args[0]), 1)})
	}
	return (method == "subtract" || method == "minus" || method == "sub") && m.earlier(s, call)
}

// shownTime repairs the days of a duration, and the text of a time as JavaScript writes it.
func (m *fixer) shownTime(s *ast.SelectorExpr, name string, call *ast.CallExpr) bool {
	if len(call.Args) > 0 {
		return false
	}
	switch method := plainName(s.Sel.Name); {
	case name == "time.Duration" && (method == "days" || method == "indays" || method == "todays"):
		return m.useHost("a duration has no days: whole ones are meant", m.replace(call, "recurgent.As("+m.text(s.X)+
			".Hours()/24, 0).(int)"))
	case name == "time.Time" && method == "toisostring":
		return m.fix("a time is printed by Format", m.replace(call, m.text(s.X)+
			`.UTC().Format("2006-01-02T15:04:05.000Z")`))
	}
	return false
}

// strftime prints a time in a layout with percents, of which each is known.
func (m *fixer) strftime(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	if len(call.Args) != 1 {
		return false
	}
	lit, ok := ast.Unparen(call.Args[0]).(*ast.BasicLit)
	if !ok {
		return false
	}
	to, ok := percentLayout(constantText(lit))
	return ok && m.fix("a time is printed by Format", m.replace(s.Sel, "Format"), m.replace(lit, strconv.Quote(to)))
}

// percentLayout returns the layout of Go for one of strftime, and whether it prints the same.
func percentLayout(text string) (to string, ok bool) {
	at := time.Date(1999, 12, 30, 21, 47, 58, 123456789, time.UTC)
	shown := ""
	for i := 0; i < len(text); i++ {
		part, value := text[i:i+1], text[i:i+1]
		if part == "%" {
			if i++; i == len(text) || percents[text[i]] == "" {
				return "", false
			}
			part = percents[text[i]]
			value = at.Format(part)
		}
		to, shown = to+part, shown+value
	}
	return to, text != "" && at.Format(to) == shown
}

// earlier repairs t.Subtract(d) and t.Sub(d): the time before a duration is t.Add(-d), and the duration between two
// times t.Sub(u).
func (m *fixer) earlier(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	switch of := m.Info.TypeOf(call.Args[0]); {
	case isDuration(of):
		return m.fix("a duration before a time is t.Add(-d)", m.replace(s.Sel, "Add"), m.before(call.Args[0], "-("),
			m.after(call.Args[0], ")"))
	case s.Sel.Name != "Sub" && types.TypeString(of, nil) == "time.Time":
		return m.fix("the duration between two times is t.Sub(u)", m.replace(s.Sel, "Sub"))
	}
	return false
}

// subtracted repairs t.Sub(d) of a duration. What is set to it gets its type in the next round.
func (m *fixer) subtracted(c *ast.CallExpr) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Sub" || len(c.Args) != 1 || types.TypeString(m.Info.TypeOf(s.X), nil) != "time.Time" ||
		!isDuration(m.Info.TypeOf(c.Args[0])) {
		return false
	}
	m.alone = len(m.edits) > 0 || m.earlier(s, c)
	return m.alone
}

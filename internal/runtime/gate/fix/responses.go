package fix

import (
	"go/ast"
	"go/token"
	"strings"
)

// jsonOf is added to a program that asks a response for its JSON.
const jsonOf = `func jsonOf(body string) (any, error) {
	var v any
	err := json.Unmarshal([]byte(body), &v)
	return v, err
}`

// responseMethod repairs methods that responses have in other languages: doc, err := r.JSON(), r.JSON(&doc), r.Text().
func (m *fixer) responseMethod(s *ast.SelectorExpr, call *ast.CallExpr) bool {
	if call == nil || len(m.edits) > 0 || call.Ellipsis.IsValid() {
		return false
	}
	body := m.text(s.X) + ".Body"
	switch name := strings.ToLower(s.Sel.Name); {
	case name == "json" && len(call.Args) == 0:
		as, ok := m.parents[call].(*ast.AssignStmt)
		if !ok || len(as.Lhs) != 2 || len(as.Rhs) != 1 {
			return false
		}
		edits, ok := m.given("jsonOf", jsonOf)
		return ok && m.fix("the JSON of a response is decoded", append(edits, m.replace(call, "jsonOf("+body+")"))...)
	case (name == "json" || name == "decode" || name == "unmarshal" || name == "decodejson") && len(call.Args) == 1:
		u, ok := call.Args[0].(*ast.UnaryExpr)
		return ok && u.Op == token.AND && m.fix("the JSON of a response is decoded",
			m.replace(call, "json.Unmarshal([]byte("+body+"), "+m.text(u)+")"))
	case (name == "text" || name == "string" || name == "body") && len(call.Args) == 0:
		if as, ok := m.parents[call].(*ast.AssignStmt); ok && len(as.Lhs) > len(as.Rhs) {
			return false
		}
		return m.fix("the text of a response is its Body", m.replace(call, body))
	}
	return false
}

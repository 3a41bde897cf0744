package fix

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/lazy"
)

// fetchers are names, in lower case, of invented functions and methods that fetch a page.
var fetchers = []string{"httpget", "fetchurl", "geturl", "fetch", "httpfetch", "fetchpage"}

// fetched replaces an invented function of the host package that fetches a page by call.Fetch, if the call is in scope.
func (m *fixer) fetched(call *ast.CallExpr, fun ast.Expr) bool {
	host := m.callName(call)
	if host == "" || len(call.Args) != 1 || !m.isPage(call) {
		return false
	}
	if t := m.Info.TypeOf(call.Args[0]); !isString(t) && !isEmptyInterface(t) {
		return false
	}
	return m.fix(m.text(fun)+" is "+host+".Fetch", m.replace(fun, host+".Fetch"))
}

// isPage reports whether the program uses the first result of a call only as a page or a string: it selects members of
// it, or passes it as a string.
func (m *fixer) isPage(call *ast.CallExpr) bool {
	as, ok := m.parents[call].(*ast.AssignStmt)
	if !ok || len(as.Rhs) != 1 || len(as.Lhs) != 2 {
		return false
	}
	v := m.variable(as.Lhs[0])
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.SelectorExpr:
		case *ast.CallExpr:
			to := m.parameterType(p, id)
			if m.Info.Types[p.Fun].IsType() {
				to = m.Info.TypeOf(p.Fun)
			}
			if to == nil || !isPlainString(to) && !elemIs(to, types.Uint8) {
				return false
			}
		default:
			return false
		}
	}
	return v != nil
}

// callName returns the name of the call in the function around a node, or "" if the function has none or redeclares the
// name.
func (m *fixer) callName(n ast.Node) string {
	f, ok := m.enclosing(n).(*ast.FuncDecl)
	if !ok {
		return ""
	}
	for _, p := range fieldsOf(f.Type.Params) {
		if m.isCall(p.typ) && p.id != nil && p.name != "_" && !m.declaresAgain(f, p.id) {
			return p.name
		}
	}
	return ""
}

// declaresAgain reports whether a function redeclares the name of one of its parameters.
func (m *fixer) declaresAgain(f *ast.FuncDecl, id *ast.Ident) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		other, ok := n.(*ast.Ident)
		found = found || ok && other != id && other.Name == id.Name && other.Obj != nil && other.Obj != id.Obj
		return !found
	})
	return found
}

// webClient replaces http.Get by call.Fetch. It does nothing if the program uses anything else of net/http that is not
// available, as lacks lists it.
func (m *fixer) webClient(name string, lacks map[string]bool) {
	if len(lacks) != 1 || !lacks["Get"] || m.readsStatus(name) { // Status is a string there
		return
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || !isName(s.X, name) || s.Sel.Name != "Get" {
			return true
		}
		if host := m.callName(s); host != "" {
			m.fix(m.text(s)+" is "+host+".Fetch", m.replace(s, host+".Fetch"))
		}
		return true
	})
}

// readsStatus reports whether the program selects Status or Header of the result of http.Get. Their types differ from
// those of a recurgent.Response.
func (m *fixer) readsStatus(name string) bool {
	pages := map[string]bool{}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if as, ok := n.(*ast.AssignStmt); ok && len(as.Rhs) == 1 && strings.HasPrefix(m.text(as.Rhs[0]), name+".Get(") {
			pages[m.text(as.Lhs[0])] = true
		}
		return true
	})
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		found = found || ok && pages[m.text(s.X)] && (s.Sel.Name == "Status" || s.Sel.Name == "Header")
		return !found
	})
	return found
}

// isResponse reports whether t is the type of a fetched page.
func isResponse(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	n, ok := types.Unalias(p.Elem()).(*types.Named)
	return ok && n.Obj().Name() == "Response" && ofHost(n.Obj())
}

// closed removes resp.Body.Close(): the body is a string.
func (m *fixer) closed(s *ast.SelectorExpr) bool {
	body, ok := ast.Unparen(s.X).(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Close" {
		return false
	}
	if owner, name := m.hostMember(body); owner+"."+name != "Response.Body" {
		return false
	}
	switch p := m.parents[m.parents[s]].(type) {
	case *ast.DeferStmt, *ast.ExprStmt:
		return m.fix("a body is a text, which is not closed", m.line(p))
	}
	return false
}

// ioutil replaces ioutil.ReadAll by io.ReadAll.
func (m *fixer) ioutil(name string, has map[string]bool) {
	if len(has) != 1 || !has["ReadAll"] || m.declares("io") {
		return
	}
	ast.Inspect(m.file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isName(s.X, name) {
			m.fix("ReadAll is in io", m.replace(s, "io.ReadAll"))
		}
		return true
	})
}

// readsText lists functions that take an io.Reader and read it from the beginning.
var readsText = []string{"bufio.NewScanner", "bufio.NewReader", "csv.NewReader", "json.NewDecoder", "xml.NewDecoder",
	"io.ReadAll"}

// reader converts a string or bytes to an io.Reader if they are read once and do not name a file. It returns ""
// otherwise.
func (m *fixer) reader(x ast.Expr, from, to types.Type) string {
	c, ok := m.parents[x].(*ast.CallExpr)
	if !ok || types.TypeString(to, nil) != "io.Reader" || !slices.Contains(readsText, m.callee(c)) || m.repeats(c) &&
		!m.ofThisRound(x) || m.Info.Types[x].Value != nil || namesFile().MatchString(m.text(x)) {
		return ""
	}
	switch {
	case isPlainString(from):
		return "strings.NewReader(" + m.text(x) + ")"
	case isEmptyInterface(from):
		text := m.asJSON(m.text(x), m.origin(x), types.Typ[types.String])
		return "strings.NewReader(" + text + ")"
	case elemIs(from, types.Uint8):
		return "bytes.NewReader(" + m.text(x) + ")"
	}
	return ""
}

// namesFile matches names of variables that hold a path or an address and not content.
var namesFile = lazy.Regexp(`(?i)(?:file|path|url|uri|name)\w*$`)

// repeats reports whether a node is in a loop or a function literal.
func (m *fixer) repeats(n ast.Node) bool {
	for p := m.parents[n]; p != nil; p = m.parents[p] {
		switch p.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return true
		}
	}
	return false
}

// ofThisRound reports whether x is a variable, or a field of one, that the innermost enclosing loop or function literal
// declares.
func (m *fixer) ofThisRound(x ast.Expr) bool {
	root := ast.Unparen(x)
	if s, ok := root.(*ast.SelectorExpr); ok {
		root = s.X
	}
	v := m.variable(root)
	for p := m.parents[x]; p != nil && v != nil; p = m.parents[p] {
		switch p.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return p.Pos() <= v.Pos() && v.Pos() < p.End()
		}
	}
	return false
}

// isFetcher reports whether a function of that name would fetch a page.
func isFetcher(name string) bool { return slices.Contains(fetchers, strings.ToLower(name)) }

package fix

import (
	"go/ast"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// textFiles opens a file as text if the program reads it only as text. Spreadsheets save text with byte order marks and
// in various character sets.
func (m *fixer) textFiles() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch owner, name := m.hostMember(s); {
		case owner != "Call" || name != "Open" && name != "ReadFile" || m.newTextFlow().result(call) != isText:
		case name == "Open":
			m.fix(readAsText, m.replace(s.Sel, "OpenText"))
		case len(call.Args) == 1:
			m.readText(call, s)
		}
		return true
	})
}

const readAsText = "the file is read as text"

// textOfFile is ReadFile for text.
const textOfFile = `(call *recurgent.Call, file any) ([]byte, error) { // all of a text, as UTF-8
	in, err := call.OpenText(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}`

// readText replaces a call of ReadFile by a function that reads text.
func (m *fixer) readText(call *ast.CallExpr, s *ast.SelectorExpr) {
	name, declared := m.helper("readText", textOfFile)
	edits := []edit{m.replace(s, name), m.before(call.Args[0], m.text(s.X)+", ")}
	if !declared {
		if len(m.edits) > 0 {
			return // another edit of this round may declare it
		}
		edits = append(edits, m.end("func "+name+textOfFile))
	}
	m.useHost(readAsText, edits...)
}

// downloaders are names, in lower case, of invented functions and methods that fetch a file.
var downloaders = []string{"fetchfile", "fetchtofile", "fetchasfile", "downloadfile", "downloadtofile", "download"}

// downloaded replaces an invented function that fetches a file by call.FetchFile, if the call is in scope and the
// program opens the result. If the name contains "file", it is enough that the program returns it.
func (m *fixer) downloaded(call *ast.CallExpr, fun *ast.SelectorExpr) bool {
	host := m.callName(call)
	as, ok := m.parents[call].(*ast.AssignStmt)
	if host == "" || !ok || len(call.Args) != 1 || !isString(m.Info.TypeOf(call.Args[0])) || len(as.Rhs) != 1 ||
		len(as.Lhs) != 2 {
		return false
	}
	v := m.variable(as.Lhs[0])
	opened, named := false, strings.Contains(strings.ToLower(fun.Sel.Name), "file")
	for _, id := range m.usesOf(v) {
		switch p := m.parents[id].(type) {
		case *ast.CallExpr:
			s, ok := p.Fun.(*ast.SelectorExpr)
			if !ok || !m.takesFile(s) {
				return false
			}
			opened = true
		case *ast.ReturnStmt, *ast.KeyValueExpr, *ast.CompositeLit:
			opened = opened || named
		default:
			if id != as.Lhs[0] {
				return false
			}
		}
	}
	return opened && m.fix(m.text(fun)+" is "+host+".FetchFile", m.replace(fun, host+".FetchFile"))
}

// takesFile reports whether a method of the call takes a file.
func (m *fixer) takesFile(s *ast.SelectorExpr) bool {
	owner, name := m.hostMember(s)
	return owner == "Call" && slices.Contains([]string{"Open", "OpenText", "ReadFile", "FileInfo"}, name)
}

// calledName returns the import path, as programs see it, and the name of the package function that is called, or ""
// for any other call.
func (m *fixer) calledName(call *ast.CallExpr) string {
	s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f := m.Info.Uses[s.Sel]
	if f == nil || f.Pkg() == nil || m.Info.Selections[s] != nil {
		return ""
	}
	return allow.SeenPath(f.Pkg().Path()) + "." + f.Name()
}

package fix

import (
	"go/ast"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// textReaders are functions that read text, and nothing else, from what they are given.
var textReaders = []string{"encoding/csv.NewReader", "bufio.NewScanner", "encoding/json.NewDecoder",
	"encoding/xml.NewDecoder", allow.Page + ".Parse"}

// textFiles opens a file as text where the program reads it as that alone: spreadsheets save text with byte order marks and in other character sets.
func (m *fixer) textFiles() {
	ast.Inspect(m.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && m.opensFile(s) && m.readAsText(call) {
			m.fix("the file is read as text", m.replace(s.Sel, "OpenText"))
		}
		return true
	})
}

func (m *fixer) opensFile(s *ast.SelectorExpr) bool {
	owner, name := m.hostMember(s)
	return owner == "Call" && name == "Open"
}

// readAsText reports whether the program gives what a call opens to readers of text, and to nobody else.
func (m *fixer) readAsText(call *ast.CallExpr) bool {
	as, ok := m.parents[call].(*ast.AssignStmt)
	if !ok || len(as.Rhs) != 1 || len(as.Lhs) != 2 {
		return false
	}
	v := m.variable(as.Lhs[0])
	if v == nil || !m.setOnce(v, as) {
		return false
	}
	read := false
	for _, id := range m.usesOf(v) {
		if id == as.Lhs[0] {
			continue
		}
		to, ok := m.parents[id].(*ast.CallExpr)
		if !ok || to.Fun == id || !slices.Contains(textReaders, m.calledName(to)) {
			return false
		}
		read = true
	}
	return read
}

// downloaders are names of functions and methods that would fetch a file, in small letters.
var downloaders = []string{"fetchfile", "fetchtofile", "fetchasfile", "downloadfile", "downloadtofile", "download"}

// downloaded writes a function of the host package that would fetch a file as call.FetchFile, where the call is at hand and the program opens what comes
// or, if the name says that it is a file, returns it.
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

// takesFile reports whether a method of the call is given a file.
func (m *fixer) takesFile(s *ast.SelectorExpr) bool {
	owner, name := m.hostMember(s)
	return owner == "Call" && slices.Contains([]string{"Open", "OpenText", "ReadFile", "FileInfo"}, name)
}

// calledName is the import path that programs see and the name of a package's function that is called, "" for another.
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

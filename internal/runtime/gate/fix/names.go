package fix

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// spellings are names of other languages and what Go calls them.
var spellings = map[string]string{"null": "nil", "None": "nil", "NULL": "nil", "True": "true", "False": "false", "float": "float64", "double": "float64", "integer": "int", "boolean": "bool"}

// undefinedName fixes a name that another language has.
func (m *fixer) undefinedName(_ types.Error, path []ast.Node, _ []string) bool {
	id, ok := path[0].(*ast.Ident)
	to := ""
	if ok {
		to = spellings[id.Name]
	}
	return to != "" && m.fix(fmt.Sprintf("%s is %s in Go", id.Name, to), m.replace(id, to))
}

// near are names of packages as they are often misremembered.
var near = map[string]string{"sort.Floats": "sort.Float64s", "sort.Runes": "slices.Sort", "sort.Int64s": "slices.Sort", "sort.Int": "sort.Ints", "sort.String": "sort.Strings", "errors.Errorf": "fmt.Errorf", "errors.Newf": "fmt.Errorf",
	"strings.Contain": "strings.Contains", "strings.Replaces": "strings.ReplaceAll", "json.Encode": "json.Marshal", "json.Stringify": "json.Marshal"}

// undefinedOfPackage fixes a name of a package that differs by case, or as near has it.
func (m *fixer) undefinedOfPackage(_ types.Error, path []ast.Node, match []string) bool {
	s, ok := nearest(path, func(s *ast.SelectorExpr) bool { return isName(s.X, match[1]) && s.Sel.Name == match[2] })
	if !ok {
		return false
	}
	if m.importedHost(s.X) {
		return m.hostFunction(s)
	}
	to := near[match[1]+"."+match[2]]
	if to == "" {
		for _, spec := range m.file.Imports {
			names, _ := m.checker.Names(importPath(spec))
			if importName(spec) != match[1] {
				continue
			}
			if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, match[2]) }); i >= 0 {
				to = match[1] + "." + names[i]
			}
		}
	}
	return to != "" && m.fix(match[1]+"."+match[2]+" is "+to, m.replace(s, to))
}

// members are what a response of net/http has, and what this one calls it.
var members = map[string]string{"StatusCode": "Status", "Headers": "Header"}

// undefinedMember fixes a field or method that a value does not have.
func (m *fixer) undefinedMember(_ types.Error, path []ast.Node, match []string) bool {
	s, ok := nearest(path, func(s *ast.SelectorExpr) bool { return s.Sel.Name == match[2] && m.Info.TypeOf(s.X) != nil })
	if !ok {
		return false
	}
	t := m.Info.TypeOf(s.X)
	owner, _ := m.hostMember(s)
	switch {
	case owner == "Call":
		return m.callMember(s)
	case m.isContext(s.X):
		return m.contextMethod(s)
	case owner == "Response" && members[s.Sel.Name] != "":
		return m.fix("a response has "+members[s.Sel.Name], m.replace(s.Sel, members[s.Sel.Name]))
	}
	call, _ := m.parents[s].(*ast.CallExpr)
	if call != nil && call.Fun != s {
		call = nil
	}
	switch t.Underlying().(type) {
	case *types.Slice:
		if call != nil {
			return m.appendMethod(call, s)
		}
		name := strings.ToLower(s.Sel.Name)
		return (name == "length" || name == "len") && m.fix("the length is len("+clip(m.text(s.X))+")", m.replace(s, "len("+m.text(s.X)+")"))
	}
	return false
}

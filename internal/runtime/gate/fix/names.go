package fix

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// spellings maps names of other languages to Go's.
var spellings = map[string]string{"null": "nil", "None": "nil", "NULL": "nil", "True": "true", "False": "false",
	"float": "float64", "integer": "int", "boolean": "bool", "double": "float64", "String": "string", "Boolean": "bool",
	"Integer": "int", "Float": "float64"}

// conversions are the spellings that also convert a value. A function double may be twice its argument, and String the
// text of a number, which Go's string is not.
var conversions = []string{"float", "integer", "Float", "Integer"}

// undefinedName repairs a name from another language.
func (m *fixer) undefinedName(_ types.Error, path []ast.Node, _ []string) bool {
	id, ok := path[0].(*ast.Ident)
	to := ""
	if ok {
		to = spellings[id.Name]
	}
	if has := m.selected()["http"]; ok && id.Name == "http" && len(has) > 0 {
		m.webClient("http", has)
		return len(m.edits) > 0
	}
	if ok && m.recursion(id) {
		return true
	}
	// A parameter list without types reads as a list of undefined types.
	if ok && m.untypedParameters(path) {
		return true
	}
	if ok && (m.foreignPackage(id) || m.undeclared(id) || m.declaredInBranches(id)) {
		return true
	}
	if ok && len(id.Name) == 1 && id.IsExported() {
		a, _ := nearest(path, func(a *ast.TypeAssertExpr) bool { return a.Type != nil && a.Type.Pos() <= id.Pos() })
		return a != nil && m.fix(id.Name+" is a type of another function: any", m.replace(id, "any"))
	}
	c, called := m.parents[id].(*ast.CallExpr)
	if to == "" || called && c.Fun == path[0] && !slices.Contains(conversions, id.Name) {
		return false
	}
	return m.fix(fmt.Sprintf("%s is %s in Go", id.Name, to), m.replace(id, to))
}

// foreignPackage repairs a call of a function of a package that programs do not have, such as lo.Filter.
func (m *fixer) foreignPackage(id *ast.Ident) bool {
	if m.foreignFunction(id) {
		return true
	}
	s, ok := m.parents[id].(*ast.SelectorExpr)
	if !ok || s.X != id {
		return false
	}
	c, ok := m.parents[s].(*ast.CallExpr)
	return ok && c.Fun == s && m.collected(c, id.Name, s.Sel.Name)
}

// near maps functions of packages that are often misremembered to the real ones.
var near = map[string]string{"sort.Floats": "sort.Float64s", "sort.Runes": "slices.Sort", "sort.Int64s": "slices.Sort",
	"errors.Errorf": "fmt.Errorf", "errors.Newf": "fmt.Errorf",
	"strings.Replaces": "strings.ReplaceAll", "strings.IndexOf": "strings.Index",
	"strings.LastIndexOf": "strings.LastIndex", "json.Encode": "json.Marshal", "json.Stringify": "json.Marshal",
	"time.ISO8601": "time.RFC3339", "time.ISO_8601": "time.RFC3339",
	"time.RFC3339Milli": `"2006-01-02T15:04:05.000Z07:00"`, "time.Day": "(24 * time.Hour)",
	"time.Days": "(24 * time.Hour)", "time.Week": "(7 * 24 * time.Hour)", "math.Infinity": "math.Inf(1)",
	"math.MaxFloat": "math.MaxFloat64", "unicode.IsAlpha": "unicode.IsLetter",
	"unicode.IsAlphabetic": "unicode.IsLetter", "unicode.IsWhitespace": "unicode.IsSpace",
	"unicode.IsWhiteSpace": "unicode.IsSpace", "unicode.IsUppercase": "unicode.IsUpper",
	"unicode.IsUpperCase": "unicode.IsUpper", "unicode.IsLowercase": "unicode.IsLower",
	"unicode.IsLowerCase": "unicode.IsLower", "unicode.IsPunctuation": "unicode.IsPunct",
	"errors.NewError":     "errors.New",
	"strconv.IntToString": "strconv.Itoa", "strconv.ParseInteger": "strconv.Atoi",
	"strconv.StringToInt": "strconv.Atoi", "regexp.Compiled": "regexp.MustCompile"}

// undefinedOfPackage repairs a name of a package that differs in case or by a final s, or that is in near.
func (m *fixer) undefinedOfPackage(_ types.Error, path []ast.Node, match []string) bool {
	s, ok := nearest(path, func(s *ast.SelectorExpr) bool { return isName(s.X, match[1]) && s.Sel.Name == match[2] })
	if !ok {
		return false
	}
	if m.importedHost(s.X) && m.errorLiteral(s) {
		return true
	}
	if m.importedHost(s.X) {
		return m.hostFunction(s)
	}
	if c, ok := m.parents[s].(*ast.CallExpr); ok && m.text(s) == "rand.Seed" &&
		strings.Contains(m.text(c), "time.Now(") {
		st, stands := m.parents[c].(*ast.ExprStmt)
		return stands && m.fix("random numbers need no seed", m.line(st))
	}
	if c, ok := m.parents[s].(*ast.CallExpr); ok && c.Fun == s && m.collected(c, match[1], match[2]) {
		return true
	}
	to := near[match[1]+"."+match[2]]
	if c, ok := m.parents[s].(*ast.CallExpr); ok && to == "" && match[1] == "strings" {
		if method := textMethods[strings.ToLower(match[2])]; method.arguments+1 == len(c.Args) {
			to = method.function
		}
	}
	if to == "" {
		for _, spec := range m.file.Imports {
			names, _ := m.checker.Names(importPath(spec))
			if importName(spec) != match[1] {
				continue
			}
			for _, same := range []func(n string) bool{
				func(n string) bool { return strings.EqualFold(n, match[2]) },
				func(n string) bool { return n+"s" == match[2] || n == match[2]+"s" },
			} {
				if i := slices.IndexFunc(names, same); i >= 0 && to == "" {
					to = match[1] + "." + names[i]
				}
			}
		}
	}
	return to != "" && m.fix(match[1]+"."+match[2]+" is "+to, m.replace(s, to))
}

// members maps fields of a net/http response to those of the host package's Response.
var members = map[string]string{"StatusCode": "Status", "Headers": "Header"}

// undefinedMember repairs a field or method that a value does not have.
func (m *fixer) undefinedMember(e types.Error, path []ast.Node, match []string) bool {
	s, ok := nearest(path, func(s *ast.SelectorExpr) bool {
		return s.Sel.Name == match[2] &&
			m.Info.TypeOf(s.X) != nil
	})
	if !ok {
		return false
	}
	t := m.Info.TypeOf(s.X)
	call, _ := m.parents[s].(*ast.CallExpr)
	if call != nil && call.Fun != s {
		call = nil
	}
	owner, _ := m.hostMember(s)
	if _, other, _ := strings.Cut(e.Msg, "but does have "); other != "" && owner == "" {
		words := strings.Fields(strings.TrimRight(other, ")"))
		return m.fix(s.Sel.Name+" is "+words[len(words)-1], m.replace(s.Sel, words[len(words)-1]))
	}
	switch {
	case owner == "Call":
		return m.callMember(s)
	case m.isContext(s.X):
		return m.contextMethod(s) || m.memberByName(s, call)
	case m.closed(s):
		return true
	case m.hidesPackage(s):
		return true
	case owner == "Response" && m.responseMethod(s, call):
		return true
	case owner == "Response" && members[s.Sel.Name] != "":
		return m.fix("a response has "+members[s.Sel.Name], m.replace(s.Sel, members[s.Sel.Name]))
	}
	if typ, ok := getterType(s.Sel.Name); ok && typ != "" && isEmptyInterface(t) && call != nil && len(call.Args) == 0 {
		return m.typedGetter(call, m.text(s.X), typ, nil)
	}
	return m.memberOfJSON(s, t, call) || m.timeMethod(s, t, call) || m.memberOfKind(s, t, call)
}

// memberOfJSON reads o.name of an object of JSON as a member of the map. A name with a capital letter
// means the key that the purpose lists.
func (m *fixer) memberOfJSON(s *ast.SelectorExpr, t types.Type, call *ast.CallExpr) bool {
	if _, json := m.isJSON(s.X); !isEmptyInterface(t) || call != nil || !json {
		return false
	}
	key := s.Sel.Name
	if s.Sel.IsExported() {
		i := slices.IndexFunc(m.terms.Keys, func(k string) bool { return plainName(k) == plainName(key) })
		if i < 0 {
			return false
		}
		key = m.terms.Keys[i]
	}
	text := m.converted(s.X, anyObject)
	return text != "" && m.useHost("a member of an object is read by its key", m.replace(s, text+
		"["+strconv.Quote(key)+"]"))
}

// memberOfKind repairs members that strings, lists and maps have in other languages, and misspelled methods of other
// values. call is the call of the member, or nil.
func (m *fixer) memberOfKind(s *ast.SelectorExpr, t types.Type, call *ast.CallExpr) bool {
	switch t.Underlying().(type) {
	case *types.Basic:
		return call != nil && (m.textMethod(call, s) || m.charactersOf(call, s)) || m.lengthOfText(s, call)
	case *types.Signature:
		return m.sortedSequence(s, call) || m.calledFirst(s)
	case *types.Slice:
		if call != nil {
			return m.appendMethod(call, s) || m.textMethod(call, s) || m.popped(call, s) || m.lengthOf(s, call) ||
				m.asText(call, s) || m.listMethod(call, s)
		}
		return m.lengthOf(s, call)
	case *types.Array:
		return m.lengthOf(s, call)
	case *types.Map:
		return m.lengthOf(s, call) || m.sortedKeys(s, call) || call != nil && m.mapMethod(call, s) ||
			m.memberByName(s, call)
	}
	return m.otherMethod(s, t)
}

// calledFirst calls a method whose result has the member that is selected, as in d.Weekday.String().
func (m *fixer) calledFirst(s *ast.SelectorExpr) bool {
	t := m.Info.TypeOf(s.X)
	if _, ok := s.X.(*ast.SelectorExpr); !ok || !isGetter(t) {
		return false
	}
	of := t.(*types.Signature).Results().At(0).Type()
	has, _, _ := types.LookupFieldOrMethod(of, true, m.Pkg, s.Sel.Name)
	return has != nil && m.fix(m.text(s.X)+" is called", m.after(s.X, "()"))
}

// hidesPackage renames a variable that hides a package where the package is meant.
func (m *fixer) hidesPackage(s *ast.SelectorExpr) bool {
	v := m.variable(s.X)
	if v == nil || v.IsField() || len(m.edits) > 0 {
		return false
	}
	for _, spec := range m.file.Imports {
		names, _ := m.checker.Names(importPath(spec))
		if importName(spec) != v.Name() || !slices.Contains(names, s.Sel.Name) {
			continue
		}
		name := m.unused(v.Name()+"Value", v.Name()+"Of")
		var edits []edit
		ast.Inspect(m.file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || m.Info.ObjectOf(id) != v {
				return true
			}
			if p, ok := m.parents[id].(*ast.SelectorExpr); !ok || p.X != id || !m.ofPackage(p, names) {
				edits = append(edits, m.replace(id, name))
			}
			return true
		})
		return m.fix("a variable has the name of package "+v.Name(), edits...)
	}
	return false
}

// ofPackage reports whether a selector on a variable means the package with these names: the variable has no such
// member, or has it as a method that is not called.
func (m *fixer) ofPackage(s *ast.SelectorExpr, names []string) bool {
	of := m.Info.Selections[s]
	if of == nil {
		return true
	}
	c, ok := m.parents[s].(*ast.CallExpr)
	return of.Kind() == types.MethodVal && (!ok || c.Fun != s) && slices.Contains(names, s.Sel.Name)
}

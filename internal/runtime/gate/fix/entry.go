package fix

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
)

// wrongRun is the start of a note about the entry function.
const wrongRun = "the program begins with func Run(call *recurgent.Call) (any, error)"

// entry adds the required function Run to a program without one. The new function calls the one that is there instead.
func (m *fixer) entry() {
	run, called := m.function("Run"), m.calledNames()
	if run != nil {
		m.signature(run)
		return
	}
	if m.method() {
		return
	}
	var own, alone []*ast.FuncDecl
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "init" || called[f.Name.Name] {
			continue
		}
		// A function that takes the call is more likely to be the start than one that does not.
		takes := slices.ContainsFunc(fieldsOf(f.Type.Params), func(p field) bool { return m.isCall(p.typ) })
		switch {
		case f.Name.Name == "main" && m.showsOnly(f):
		case f.Name.Name == "main", f.Recv != nil && takes: // the program may start here
			return
		case f.Recv != nil:
		case takes:
			own = append(own, f)
		default:
			alone = append(alone, f)
		}
	}
	switch {
	case len(own) == 1:
		m.wrap(own[0], own[0].Name.Name)
	case len(own) == 0 && len(alone) == 1:
		m.wrap(alone[0], alone[0].Name.Name)
	}
}

// method adds a Run that calls the method Run of an empty struct.
func (m *fixer) method() bool {
	var methods []*ast.FuncDecl
	for _, d := range m.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		if f.Recv == nil && slices.ContainsFunc(fieldsOf(f.Type.Params),
			func(p field) bool { return m.isCall(p.typ) }) {
			return false
		}
		if f.Recv != nil && m.called(fieldsOf(f.Type.Params), fieldsOf(f.Type.Results)) {
			methods = append(methods, f)
		}
	}
	if len(methods) != 1 || methods[0].Name.Name != "Run" {
		return false
	}
	typ := fieldsOf(methods[0].Recv)[0].typ
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	id, ok := typ.(*ast.Ident)
	if !ok || !m.isEmptyStruct(id.Name) {
		return false
	}
	return m.useHost(wrongRun+": it calls the method",
		m.end("func Run(call *recurgent.Call) (any, error) {\n\treturn new("+id.Name+").Run(call)\n}"))
}

// isEmptyStruct reports whether the file declares a type of that name as a struct without fields.
func (m *fixer) isEmptyStruct(name string) bool {
	found := false
	ast.Inspect(m.file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
			t, isStruct := spec.Type.(*ast.StructType)
			found = isStruct && len(t.Fields.List) == 0
		}
		return !found
	})
	return found
}

// signature repairs a Run with another signature: it adapts the signature, or renames the function and adds a Run that
// calls it.
func (m *fixer) signature(run *ast.FuncDecl) {
	params, results := fieldsOf(run.Type.Params), fieldsOf(run.Type.Results)
	if run.Body == nil || m.called(params, results) {
		return
	}
	if len(results) == 0 && (len(params) == 1 && m.isCall(params[0].typ)) {
		m.fix(wrongRun, edit{m.offset(run.Type.Params.End()), m.offset(run.Body.Pos()), " (any, error) "})
		return
	}
	if len(params) == 0 && uses(run.Body, "call") {
		m.useHost(wrongRun, m.replace(run.Type.Params, "(call *recurgent.Call)"))
		return
	}
	m.wrap(run, m.unused("run", "compute", "answer"))
}

// wrap adds a Run that calls function f under that name. It passes the call, or the arguments that match the parameters
// by name.
func (m *fixer) wrap(f *ast.FuncDecl, name string) {
	results, params := fieldsOf(f.Type.Results), fieldsOf(f.Type.Params)
	if m.byPointer(f) || f.Type.TypeParams != nil || len(results) == 0 || len(results) > 2 ||
		isName(results[0].typ, "error") || len(results) == 2 && !isName(results[1].typ, "error") {
		return
	}
	var edits []edit
	// A context that the function does not use is dropped. Runs have none.
	if list := slices.DeleteFunc(slices.Clone(params), func(p field) bool {
		return m.text(p.typ) == "context.Context" &&
			!uses(f.Body, p.name)
	}); len(list) < len(params) {
		if len(list) != 1 || !m.isCall(list[0].typ) {
			return
		}
		params = list
		edits = append(edits, m.replace(f.Type.Params, "("+list[0].name+" "+m.text(list[0].typ)+")"))
	}
	var args []string
	bound := ""
	// taken is the index of the first parameter that is not the call.
	taken := slices.IndexFunc(params, func(p field) bool { return !m.isCall(p.typ) })
	for i, p := range params {
		if typ := m.inputStruct(p, len(params)-max(0, taken)); typ != "" {
			bound = "var in " + typ + "\n\tif err := call.Bind(&in); err != nil {\n\t\treturn nil, err\n\t}\n\t"
			args = append(args, strings.Repeat("&", len(m.text(p.typ))-len(typ))+"in")
			continue
		}
		arg := m.parameter(f, p, i-max(0, taken), len(params)-max(0, taken))
		if arg == "" {
			return
		}
		args = append(args, arg)
	}
	body := "return " + name + "(" + strings.Join(args, ", ") + ")"
	switch {
	case len(results) == 1 && isAnyExpr(results[0].typ): // the value may be an error
		body = "value := " + strings.TrimPrefix(body, "return ") +
			"\n\tif err, failed := value.(error); failed {\n\t\treturn nil, err\n\t}\n\treturn value, nil"
	case len(results) == 1:
		body += ", nil"
	}
	edits = append(edits, m.end("func Run(call *recurgent.Call) (any, error) {\n\t"+bound+body+"\n}"))
	// The function gives up the name Run, in its declaration and wherever it calls itself.
	if name != f.Name.Name {
		ast.Inspect(m.file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.Obj != nil && id.Obj.Decl == f {
				edits = append(edits, m.replace(id, name))
			}
			return true
		})
	}
	// Nothing calls main, and it may refer to the old name.
	if main := m.function("main"); main != nil {
		edits = slices.DeleteFunc(edits, func(e edit) bool {
			return e.from >= m.offset(main.Pos()) && e.to <= m.offset(main.End()) && e.from < e.to
		})
		edits = append(edits, m.without(main))
	}
	m.useHost(wrongRun+": it calls "+name, edits...)
}

// byPointer makes a function take the call by pointer. Otherwise changes to the copy would be lost.
func (m *fixer) byPointer(f *ast.FuncDecl) bool {
	for _, p := range fieldsOf(f.Type.Params) {
		if _, pointer := p.typ.(*ast.StarExpr); !pointer && m.isCall(p.typ) {
			return m.fix("the call is a pointer", m.before(p.typ, "*"))
		}
	}
	return false
}

// parameter returns the expression to pass for a parameter of the function that Run calls: the call, the declared
// argument of that name, the only argument, or, if the function's name is Run or the method's, the argument at the same
// position. It returns "" if the choice is not clear.
func (m *fixer) parameter(f *ast.FuncDecl, p field, i, of int) string {
	switch {
	case m.isCall(p.typ):
		return "call"
	case p.name == "" || p.name == "_":
		return ""
	case of == 1 && slices.Contains(allInputs, p.name) && m.isObject(p.typ):
		return m.allArguments()
	case slices.Contains(allInputs, p.name) && m.isListOfAny(p.typ) &&
		!slices.ContainsFunc(m.terms.Parameters, func(d report.Parameter) bool { return d.Name == p.name }):
		return "" // this could mean all arguments or one
	}
	name, declared := p.name, m.terms.Parameters
	switch place := slices.IndexFunc(declared, func(d report.Parameter) bool { return d.Name == name }); {
	case len(declared) == 1 && of == 1:
		name = declared[0].Name
	case len(declared) == of && place >= 0:
		i = place
	case len(declared) > 0 || of > 1 && !m.isMethod(f.Name.Name):
		return "" // the mapping is not clear
	}
	arg, like := fmt.Sprintf("call.Arg(%d, %q)", i, name), m.written(p.typ)
	switch {
	case isAnyExpr(p.typ) && len(declared) > 0:
		return arg
	case like == "": // of any: under a wrong name it would silently be null
		return ""
	}
	return "recurgent.Must(" + arg + ", " + like + ").(" + m.text(p.typ) + ")"
}

// allInputs are names of a parameter that holds all arguments by name.
var allInputs = []string{"args", "arguments", "params", "parameters", "input", "inputs", "kwargs"}

// isObject reports whether a type expression is map[string]any.
func (m *fixer) isObject(t ast.Expr) bool {
	o, ok := t.(*ast.MapType)
	return ok && isName(o.Key, "string") && isAnyExpr(o.Value)
}

// isListOfAny reports whether a type expression is []any.
func (m *fixer) isListOfAny(t ast.Expr) bool {
	l, ok := t.(*ast.ArrayType)
	return ok && isAnyExpr(l.Elt)
}

// allArguments returns an expression for an object of the declared arguments. It returns "" if none are declared, or if
// such an object may be a single argument.
func (m *fixer) allArguments() string {
	var list []string
	for i, p := range m.terms.Parameters {
		if slices.Contains(allInputs, p.Name) || !isNameText().MatchString(p.Name) {
			return ""
		}
		list = append(list, fmt.Sprintf("\t\tif v := call.Arg(%d, %q); v != nil {\n\t\t\targs[%q] = v\n\t\t}\n", i,
			p.Name, p.Name))
	}
	if len(list) == 0 {
		return ""
	}
	return "func() map[string]any {\n\t\targs := map[string]any{}\n" + strings.Join(list, "") + "\t\treturn args\n\t}()"
}

// isMethod reports whether a function's name is Run or contains the method's name.
func (m *fixer) isMethod(name string) bool {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	return name == "Run" || m.terms.Method != "" && strings.Contains(plain(name), plain(m.terms.Method))
}

// written returns a value of the type for recurgent.Must, judging by the type's text, because the program is not
// type-checked yet. It returns "" for types that decoded JSON is not converted to.
func (m *fixer) written(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.ArrayType:
		if t.Len == nil && (isAnyExpr(t.Elt) || m.written(t.Elt) != "") {
			return m.text(t) + "{}"
		}
	case *ast.MapType:
		if isName(t.Key, "string") && (isAnyExpr(t.Value) || m.written(t.Value) != "") {
			return m.text(t) + "{}"
		}
	case *ast.Ident:
		switch t.Name {
		case "int", "int64":
			return t.Name + "(0)"
		case "float64":
			return "0.0"
		case "string":
			return `""`
		case "bool":
			return "false"
		}
	}
	return ""
}

// without deletes a function declaration with its doc comment.
func (m *fixer) without(f *ast.FuncDecl) edit {
	e := edit{m.offset(f.Pos()), m.offset(f.End()), ""}
	if f.Doc != nil {
		e.from = m.offset(f.Doc.Pos())
	}
	return e
}

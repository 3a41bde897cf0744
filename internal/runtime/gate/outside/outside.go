// Package outside finds what a program's text names beyond itself: the hosts of addresses, writing HTTP methods, and other tools' methods. Texts are
// followed through constants, concatenation, fmt.Sprintf, variables, parameters and lists, as far as they are sure to lead; what a program computes
// otherwise is Computed. Every address that stands in the text counts, whether it is fetched or not.
//
// It is for a person to be asked in time, not a boundary: what a run reaches is decided when it does.
package outside

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Computed in a list stands for what the program computes.
const Computed = "*"

// Bounds of each list, and of a name in bytes. A program that names more is as one that computes.
const (
	maxNamed = 64
	maxName  = 300
)

// Named is what a program's text names. Lists are sorted.
type Named struct {
	Hosts  []string // with their scheme: https://api.example.org
	Writes []string // HTTP methods but GET and HEAD
	Tools  []string // role.method
}

type finder struct {
	file   *ast.File
	info   *types.Info
	flows  *flows
	hosts  map[string]bool
	writes map[string]bool
	tools  map[string]bool
}

// Of finds what the program names. It is type-checked.
func Of(file *ast.File, info *types.Info) Named {
	f := &finder{file: file, info: info, flows: flowsOf(file, info), hosts: map[string]bool{},
		writes: map[string]bool{}, tools: map[string]bool{}}
	called := map[ast.Node]bool{} // functions of calls, and what parentheses hold
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			f.named(e)
			f.pointers(e)
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			called[ast.Unparen(n.Fun)] = true
			f.call(n)
		case *ast.SelectorExpr:
			if !called[n] {
				f.value(n)
			}
		case *ast.CompositeLit:
			f.request(n)
		case *ast.AssignStmt:
			f.assigned(n)
		case *ast.InterfaceType:
			f.methods(n)
		}
		return true
	})
	return Named{listed(f.hosts), listed(f.writes), listed(f.tools)}
}

func listed(set map[string]bool) []string {
	list := slices.Sorted(maps.Keys(set))
	if len(list) > maxNamed || slices.ContainsFunc(list, func(name string) bool { return len(name) > maxName }) {
		return []string{Computed}
	}
	return list
}

// host returns the type of the host package that the expression has, "" for another, and whether it is a pointer to it.
func (f *finder) host(t types.Type) (name string, pointer bool) {
	if t == nil {
		return "", false
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t, pointer = p.Elem(), true
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || n.Obj().Pkg().Path() != allow.HostPath {
		return "", false
	}
	return n.Obj().Name(), pointer
}

// method returns the host type whose method the selector means, and the method; a method that is promoted from an embedded Call is Call's.
func (f *finder) method(s *ast.SelectorExpr) (typ, name string) {
	sel := f.info.Selections[s]
	if sel == nil {
		return "", ""
	}
	fn, ok := sel.Obj().(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != allow.HostPath || fn.Signature().Recv() == nil {
		return "", ""
	}
	typ, _ = f.host(fn.Signature().Recv().Type())
	return typ, fn.Name()
}

// named notes the host of an address that stands in the text.
func (f *finder) named(e ast.Expr) {
	if v := f.info.Types[e].Value; v != nil && v.Kind() == constant.String {
		if origin, known := originOf(text{constant.StringVal(v), true}); known && origin != "" {
			f.hosts[origin] = true
		}
	}
}

// pointers takes a program that passes a request by its address for one that computes: whoever has the address may set it.
func (f *finder) pointers(e ast.Expr) {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		x := ast.Unparen(u.X)
		if s, field := x.(*ast.SelectorExpr); field {
			x = s.X
		}
		if name, _ := f.host(f.info.TypeOf(x)); name == "Request" {
			f.computedRequest()
		}
	}
}

func (f *finder) computedRequest() { f.hosts[Computed], f.writes[Computed] = true, true }

// call notes what a call reaches.
func (f *finder) call(n *ast.CallExpr) {
	if f.info.Types[n.Fun].IsType() {
		if name, _ := f.host(f.info.TypeOf(n)); name == "Request" {
			f.computedRequest() // of another struct's fields
		}
		return
	}
	if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && id.Name == "new" &&
		f.info.Uses[id] == types.Universe.Lookup("new") {
		if name, _ := f.host(f.info.TypeOf(n)); name == "Request" {
			f.computedRequest()
		}
	}
	s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch typ, name := f.method(s); {
	case typ == "":
	case f.info.Selections[s].Kind() != types.MethodVal:
		f.value(s)
	case typ == "Call" && (name == "Fetch" || name == "FetchFile") && len(n.Args) == 1:
		f.address(n.Args[0])
	case typ == "Tool" && (name == "Call" || name == "CallWith"):
		f.tool(s.X, n.Args)
	}
}

// value takes a program that uses such a method as a value for one that computes.
func (f *finder) value(s *ast.SelectorExpr) {
	switch typ, name := f.method(s); {
	case typ == "Call" && (name == "Fetch" || name == "FetchFile"):
		f.hosts[Computed] = true
	case typ == "Tool" && (name == "Call" || name == "CallWith"), typ == "Call" &&
		(name == "Tool" || name == "Delegate"):
		f.tools[Computed] = true
	}
}

// methods takes a program that calls such methods by an interface of its own for one that computes.
func (f *finder) methods(n *ast.InterfaceType) {
	for _, m := range n.Methods.List {
		for _, id := range m.Names {
			switch id.Name {
			case "Fetch", "FetchWith", "FetchFile":
				f.computedRequest()
			case "Tool", "Delegate", "Call", "CallWith":
				f.tools[Computed] = true
			}
		}
	}
}

// request notes what a composite literal asks for.
func (f *finder) request(n *ast.CompositeLit) {
	if name, _ := f.host(f.info.TypeOf(n)); name != "Request" {
		return
	}
	for i, e := range n.Elts {
		field, value := "", e
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				field = id.Name
			}
			value = kv.Value
		} else if i < 2 {
			field = []string{"URL", "Method"}[i]
		}
		f.set(field, value)
	}
}

// assigned notes what is set of a request.
func (f *finder) assigned(n *ast.AssignStmt) {
	for i, l := range n.Lhs {
		s, ok := ast.Unparen(l).(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if name, _ := f.host(f.info.TypeOf(s.X)); name != "Request" {
			continue
		}
		if n.Tok != token.ASSIGN || len(n.Lhs) != len(n.Rhs) {
			f.computedRequest()
			continue
		}
		f.set(s.Sel.Name, n.Rhs[i])
	}
}

func (f *finder) set(field string, value ast.Expr) {
	switch field {
	case "URL":
		f.address(value)
	case "Method":
		for _, t := range f.flows.texts(value, 0) {
			switch m := strings.ToUpper(t.begins); {
			case !t.whole:
				f.writes[Computed] = true
			case m != "" && m != "GET" && m != "HEAD":
				f.writes[m] = true
			}
		}
	}
}

// address notes the hosts that an address may have.
func (f *finder) address(e ast.Expr) {
	for _, t := range f.flows.texts(e, 0) {
		switch origin, known := originOf(t); {
		case !known:
			f.hosts[Computed] = true
		case origin != "":
			f.hosts[origin] = true
		}
	}
}

// tool notes the methods and roles that may be called.
func (f *finder) tool(receiver ast.Expr, args []ast.Expr) {
	if len(args) == 0 {
		return
	}
	for _, r := range f.flows.roles(receiver, f.role, 0) {
		for _, m := range f.flows.texts(args[0], 0) {
			if !r.whole || !m.whole {
				f.tools[Computed] = true
				continue
			}
			f.tools[r.begins+"."+m.begins] = true
		}
	}
}

// role returns the argument that names the role, where the call makes a tool; nil for another call.
func (f *finder) role(n *ast.CallExpr) ast.Expr {
	s, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
	if !ok || len(n.Args) == 0 {
		return nil
	}
	if typ, name := f.method(s); typ == "Call" && (name == "Tool" || name == "Delegate") &&
		f.info.Selections[s].Kind() == types.MethodVal {
		return n.Args[0]
	}
	return nil
}

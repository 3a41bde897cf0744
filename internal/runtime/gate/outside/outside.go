// Package outside finds the external things that a program's text names: the hosts of URLs, HTTP methods that write,
// and methods of other tools. It follows strings through constants, concatenation, fmt.Sprintf, variables, parameters
// and lists, as long as the result is certain. Anything else that a program computes is reported as computed. Every URL
// in the text counts, whether the program fetches it or not.
//
// The result lets a person be asked in advance. It is not a security boundary: access is decided when a run asks for
// it.
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

// computed stands, in a list, for names that the program computes.
const computed = "*"

// Limits of each list, and of a name in bytes. A program that exceeds them counts as one that computes names.
const (
	maxNamed = 64
	maxName  = 300
)

// Named lists what a program's text names. The lists are sorted.
type Named struct {
	Hosts  []string // with the scheme: https://api.example.org
	Writes []string // HTTP methods other than GET and HEAD
	Tools  []string // role.method
}

// A finder collects the names in one program.
type finder struct {
	file   *ast.File
	info   *types.Info
	flows  *flows
	hosts  map[string]bool
	writes map[string]bool
	tools  map[string]bool
}

// Of returns the names in a type-checked program.
func Of(file *ast.File, info *types.Info) Named {
	f := &finder{file: file, info: info, flows: flowsOf(file, info), hosts: map[string]bool{},
		writes: map[string]bool{}, tools: map[string]bool{}}
	called := map[ast.Node]bool{} // functions of calls, without parentheses
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

// listed returns the names sorted, or only computed if there are too many or one is too long.
func listed(set map[string]bool) []string {
	list := slices.Sorted(maps.Keys(set))
	if len(list) > maxNamed || slices.ContainsFunc(list, func(name string) bool { return len(name) > maxName }) {
		return []string{computed}
	}
	return list
}

// host returns the name of the host package's type that t is or points to, or "" for any other type, and whether t is a
// pointer.
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

// method returns the host package's method that a selector refers to, and its type, or two empty strings for any other
// selector. A method promoted from an embedded Call belongs to Call.
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

// named records the host of a URL in the text.
func (f *finder) named(e ast.Expr) {
	if v := f.info.Types[e].Value; v != nil && v.Kind() == constant.String {
		if origin, known := originOf(text{constant.StringVal(v), true}); known && origin != "" {
			f.hosts[origin] = true
		}
	}
}

// pointers marks a program that takes the address of a request as one that computes: whoever has the address may change
// the request.
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

// computedRequest records that the program computes a request: any host, any method.
func (f *finder) computedRequest() { f.hosts[computed], f.writes[computed] = true, true }

// call records what a call reaches.
func (f *finder) call(n *ast.CallExpr) {
	if f.info.Types[n.Fun].IsType() {
		if name, _ := f.host(f.info.TypeOf(n)); name == "Request" {
			f.computedRequest() // converted from another struct type
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

// value marks a program that uses such a method as a value as one that computes.
func (f *finder) value(s *ast.SelectorExpr) {
	switch typ, name := f.method(s); {
	case typ == "Call" && (name == "Fetch" || name == "FetchFile"):
		f.hosts[computed] = true
	case typ == "Tool" && (name == "Call" || name == "CallWith"), typ == "Call" &&
		(name == "Tool" || name == "Delegate"):
		f.tools[computed] = true
	}
}

// methods marks a program that may call such methods through an interface of its own as one that computes.
func (f *finder) methods(n *ast.InterfaceType) {
	for _, m := range n.Methods.List {
		for _, id := range m.Names {
			switch id.Name {
			case "Fetch", "FetchWith", "FetchFile":
				f.computedRequest()
			case "Tool", "Delegate", "Call", "CallWith":
				f.tools[computed] = true
			}
		}
	}
}

// request records the URL and method in a composite literal of a request.
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

// assigned records the URL or method that is assigned to a request.
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

// set records a field of a request that the program sets to a value.
func (f *finder) set(field string, value ast.Expr) {
	switch field {
	case "URL":
		f.address(value)
	case "Method":
		for _, t := range f.flows.texts(value, 0) {
			switch m := strings.ToUpper(t.begins); {
			case !t.whole:
				f.writes[computed] = true
			case m != "" && m != "GET" && m != "HEAD":
				f.writes[m] = true
			}
		}
	}
}

// address records the hosts that a URL may have.
func (f *finder) address(e ast.Expr) {
	for _, t := range f.flows.texts(e, 0) {
		switch origin, known := originOf(t); {
		case !known:
			f.hosts[computed] = true
		case origin != "":
			f.hosts[origin] = true
		}
	}
}

// tool records the roles and methods that may be called.
func (f *finder) tool(receiver ast.Expr, args []ast.Expr) {
	if len(args) == 0 {
		return
	}
	for _, r := range f.flows.roles(receiver, f.role, 0) {
		for _, m := range f.flows.texts(args[0], 0) {
			if !r.whole || !m.whole {
				f.tools[computed] = true
				continue
			}
			f.tools[r.begins+"."+m.begins] = true
		}
	}
}

// role returns the argument that names the role if the call creates a tool, or nil.
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

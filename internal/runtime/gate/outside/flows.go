package outside

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Limits on following values. Hostile programs may make values branch.
const (
	maxDepth = 16
	maxSteps = 20_000
)

// flows records where values go in a program. It ignores the order of statements: a variable, a parameter or a struct
// field may hold anything that is assigned to it anywhere.
type flows struct {
	info    *types.Info
	values  map[types.Object][]ast.Expr // values assigned to an object; nil for one that cannot be followed
	grows   map[types.Object][]ast.Expr // strings appended to it
	ranges  map[types.Object][]ast.Expr // operands of the ranges whose elements it receives
	params  map[types.Object]param
	calls   map[*types.Func][]*ast.CallExpr // calls of the program's own functions; nil for an unknown call
	returns map[*types.Func][]ast.Expr      // first results of the program's own functions; nil for a named result
	steered bool                            // the program sets the host of a url.URL
	steps   int                             // steps left before following gives up
}

// A param is a parameter of one of the program's own functions.
type param struct {
	of    *types.Func
	place int
}

// flowsOf records the flows in a file. It must run before any expression is followed.
func flowsOf(file *ast.File, info *types.Info) *flows {
	f := &flows{info: info, values: map[types.Object][]ast.Expr{}, grows: map[types.Object][]ast.Expr{},
		ranges: map[types.Object][]ast.Expr{}, params: map[types.Object]param{},
		calls: map[*types.Func][]*ast.CallExpr{}, returns: map[*types.Func][]ast.Expr{}, steps: maxSteps}
	called := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f.function(n)
		case *ast.AssignStmt:
			f.assign(n)
		case *ast.ValueSpec:
			f.declare(n)
		case *ast.RangeStmt:
			f.loop(n)
		case *ast.CompositeLit:
			f.fields(n)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				f.set(n.X, nil) // whoever has the address may set it
			}
		case *ast.CallExpr:
			called[ast.Unparen(n.Fun)] = true
			f.call(n)
		case *ast.Ident:
			if fn, ok := info.Uses[n].(*types.Func); ok && !called[n] {
				f.calls[fn] = append(f.calls[fn], nil) // used as a value: its callers are unknown
			}
		}
		return true
	})
	return f
}

// function records the parameters and results of one of the program's own functions. Methods are not followed, because
// they may be called through interfaces.
func (f *flows) function(n *ast.FuncDecl) {
	fn, ok := f.info.Defs[n.Name].(*types.Func)
	if !ok || n.Recv != nil || n.Body == nil {
		return
	}
	place := 0
	for _, field := range n.Type.Params.List {
		if _, variadic := field.Type.(*ast.Ellipsis); variadic {
			break
		}
		for _, name := range field.Names {
			f.params[f.info.Defs[name]] = param{fn, place}
			place++
		}
	}
	ast.Inspect(n.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			var first ast.Expr // nil if the results are named
			if len(n.Results) > 0 {
				first = n.Results[0]
			}
			f.returns[fn] = append(f.returns[fn], first)
		}
		return true
	})
}

// object returns the variable or field that the expression refers to, or nil.
func (f *flows) object(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := f.info.ObjectOf(e).(*types.Var); ok {
			return v
		}
	case *ast.SelectorExpr:
		if s := f.info.Selections[e]; s != nil && s.Kind() == types.FieldVal {
			return s.Obj()
		}
	}
	return nil
}

// set records an assignment. value is nil if it cannot be followed.
func (f *flows) set(to, value ast.Expr) {
	if ix, ok := ast.Unparen(to).(*ast.IndexExpr); ok {
		f.set(ix.X, nil) // an element
		return
	}
	if s, ok := ast.Unparen(to).(*ast.StarExpr); ok {
		f.set(s.X, nil)
		return
	}
	o := f.object(to)
	if o == nil {
		return
	}
	if b, ok := value.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		for left, ok := ast.Unparen(b.X).(*ast.BinaryExpr); ok; left, ok = ast.Unparen(b.X).(*ast.BinaryExpr) {
			b = left
		}
		if f.object(b.X) == o {
			f.grows[o] = append(f.grows[o], b.Y)
			return
		}
	}
	f.values[o] = append(f.values[o], value)
}

// assign records an assignment. It also notices changes to the host of a url.URL.
func (f *flows) assign(n *ast.AssignStmt) {
	for i, l := range n.Lhs {
		if s, ok := ast.Unparen(l).(*ast.SelectorExpr); ok && isURL(f.info.TypeOf(s.X)) && s.Sel.Name != "Path" &&
			s.Sel.Name != "RawQuery" && s.Sel.Name != "RawPath" && s.Sel.Name != "Fragment" {
			f.steered = true
		}
		switch {
		case n.Tok == token.ADD_ASSIGN:
			if o := f.object(l); o != nil {
				f.grows[o] = append(f.grows[o], n.Rhs[i])
			}
		case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
			f.set(l, nil)
		default:
			f.set(l, valueAt(n.Rhs, len(n.Lhs), i))
		}
	}
}

// declare records a variable declaration.
func (f *flows) declare(n *ast.ValueSpec) {
	for i, name := range n.Names {
		if o := f.info.Defs[name]; len(n.Values) == 0 && o != nil {
			f.values[o] = append(f.values[o], n.Values...) // known to have no value yet
			continue
		}
		f.set(name, valueAt(n.Values, len(n.Names), i))
	}
}

// valueAt returns the expression that the name at index i gets its value from, or nil for a later result of a call.
func valueAt(values []ast.Expr, names, i int) ast.Expr {
	switch {
	case len(values) == names:
		return values[i]
	case i == 0 && len(values) > 0:
		return values[0]
	}
	return nil
}

// loop records the variables of a range statement. The key cannot be followed.
func (f *flows) loop(n *ast.RangeStmt) {
	if n.Key != nil {
		f.set(n.Key, nil)
	}
	if n.Value == nil {
		return
	}
	if o := f.object(n.Value); o != nil {
		f.ranges[o] = append(f.ranges[o], n.X)
	}
}

// fields records the struct fields that a composite literal sets.
func (f *flows) fields(n *ast.CompositeLit) {
	t := f.info.TypeOf(n)
	if t == nil {
		return
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok {
				if o := f.info.Uses[id]; o != nil {
					f.values[o] = append(f.values[o], kv.Value)
				}
			}
		} else if i < s.NumFields() {
			f.values[s.Field(i)] = append(f.values[s.Field(i)], e)
		}
	}
}

// call records the calls of the program's own functions. Any other function may set everything that a pointer argument
// leads to.
func (f *flows) call(n *ast.CallExpr) {
	if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok {
		if fn, ok := f.info.Uses[id].(*types.Func); ok {
			f.calls[fn] = append(f.calls[fn], n)
			return
		}
	}
	for _, a := range n.Args {
		if t := f.info.TypeOf(a); t != nil {
			if p, ok := t.Underlying().(*types.Pointer); ok {
				f.open(p.Elem(), 0)
			}
		}
	}
}

// open marks all fields below a type as impossible to follow.
func (f *flows) open(t types.Type, depth int) {
	if depth > maxDepth {
		return
	}
	switch t := t.Underlying().(type) {
	case *types.Struct:
		for i := range t.NumFields() {
			f.values[t.Field(i)] = append(f.values[t.Field(i)], nil)
			f.open(t.Field(i).Type(), depth+1)
		}
	case *types.Slice:
		f.open(t.Elem(), depth+1)
	case *types.Array:
		f.open(t.Elem(), depth+1)
	case *types.Map:
		f.open(t.Elem(), depth+1)
	case *types.Pointer:
		f.open(t.Elem(), depth+1)
	}
}

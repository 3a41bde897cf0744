package inputs

import (
	"go/ast"
	"go/types"
)

// A callee is a function to follow.
type callee struct {
	node     ast.Node
	typ      *ast.FuncType
	body     *ast.BlockStmt
	sig      *types.Signature
	parent   *frame
	typeArgs map[*types.TypeParam]types.Type
	receiver *ast.Ident
	received *value
}

// follow visits the callee's body with what is known of the arguments, and returns what is known of the results. A
// function that gets nothing of interest is visited once.
func (fr *frame) follow(e *ast.CallExpr, c callee) []*value {
	f := fr.f
	values := make([]*value, len(e.Args))
	interesting := c.received != nil || c.parent != f.globals
	for i, a := range e.Args {
		values[i] = fr.eval(a)
		v := values[i]
		interesting = interesting || v != nil && (v.call || v.args || v.kwargs || v.fn != nil || v.fields != nil || len(v.reads) > 0)
	}
	if f.depth >= maxDepth || !f.step() || !interesting && f.visited[c.node] {
		if interesting {
			for _, v := range values {
				fr.escape(v)
			}
			fr.escape(c.received)
		}
		return nil
	}
	f.visited[c.node] = true
	next := &frame{f: f, parent: c.parent, vars: map[types.Object]*value{}, numbers: map[types.Object]int{}, typeArgs: c.typeArgs,
		depth: fr.depth + 1, missing: fr.missing, guards: fr.guards, atLeast: fr.atLeast, failing: fr.failing}
	if c.sig != nil {
		next.returns = c.sig.Results()
	}
	if c.receiver != nil {
		next.vars[f.info.Defs[c.receiver]] = c.received
	}
	fr.parameters(next, c, e, values)
	f.depth++
	next.block(c.body.List)
	f.depth--
	return next.outcome(values)
}

// parameters binds the arguments of a call to the callee's parameters.
func (fr *frame) parameters(next *frame, c callee, e *ast.CallExpr, values []*value) {
	i := 0
	for _, field := range c.typ.Params.List {
		_, variadic := field.Type.(*ast.Ellipsis)
		for _, name := range field.Names {
			obj := fr.f.info.Defs[name]
			switch {
			case obj == nil:
			case variadic && !e.Ellipsis.IsValid():
				next.vars[obj] = fr.gathered(values[min(i, len(values)):])
			case i < len(values):
				next.vars[obj] = values[i]
				if n, ok := fr.number(e.Args[i]); ok && isInteger(obj.Type()) {
					next.numbers[obj] = n
				}
			}
			i++
		}
		if len(field.Names) == 0 {
			i++
		}
	}
}

func isInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// gathered is the list of a variadic parameter.
func (fr *frame) gathered(values []*value) *value {
	out := &value{}
	for _, v := range values {
		if v != nil && len(v.texts) > 0 {
			out.texts = unionTexts(out.texts, v.texts)
			continue
		}
		fr.escape(v)
	}
	return out
}

// outcome is what is known of a finished call's results.
func (fr *frame) outcome(args []*value) []*value {
	out := fr.results
	if fr.returns == nil || fr.returns.Len() < 2 {
		return out
	}
	for len(out) < fr.returns.Len() {
		out = append(out, nil)
	}
	last := fr.returns.Len() - 1
	if b, ok := fr.returns.At(last).Type().Underlying().(*types.Basic); !ok || b.Kind() != types.Bool {
		return out
	}
	var reads []*read // the boolean says whether these were there and of use
	if out[0] != nil {
		reads = out[0].reads
	}
	for _, a := range args {
		if len(reads) == 0 && a != nil {
			reads = a.reads
		}
	}
	if len(reads) > 0 {
		out[last] = &value{present: reads}
	}
	return out
}

// enter visits a function of the program with these arguments.
func (f *finder) enter(parent *frame, typ *ast.FuncType, body *ast.BlockStmt, args []*value) {
	fr := &frame{f: f, parent: parent, vars: map[types.Object]*value{}, numbers: map[types.Object]int{}, depth: 1}
	i := 0
	for _, field := range typ.Params.List {
		for _, name := range field.Names {
			if obj := f.info.Defs[name]; obj != nil && i < len(args) {
				fr.vars[obj] = args[i]
			}
			i++
		}
	}
	fr.returns = resultsOf(f.info, typ)
	fr.block(body.List)
	for _, v := range fr.results {
		fr.escape(v) // it is the answer
	}
}

func resultsOf(info *types.Info, typ *ast.FuncType) *types.Tuple {
	var vars []*types.Var
	if typ.Results != nil {
		for _, field := range typ.Results.List {
			for range max(1, len(field.Names)) {
				vars = append(vars, types.NewVar(field.Pos(), nil, "", info.TypeOf(field.Type)))
			}
		}
	}
	return types.NewTuple(vars...)
}

// unknown visits a closure that somebody calls with arguments which are not known.
func (f *finder) unknown(c *closure) {
	if f.visited[c.lit] || f.depth >= maxDepth || !f.step() {
		return
	}
	f.visited[c.lit] = true
	f.depth++
	defer func() { f.depth-- }()
	fr := &frame{f: f, parent: c.frame, vars: map[types.Object]*value{}, numbers: map[types.Object]int{}, depth: c.frame.depth + 1,
		missing: c.frame.missing, guards: c.frame.guards, atLeast: c.frame.atLeast, failing: c.frame.failing, returns: resultsOf(f.info, c.lit.Type)}
	fr.block(c.lit.Body.List)
}

// result notes what a return statement gives.
func (fr *frame) result(i int, v *value) {
	for len(fr.results) <= i {
		fr.results = append(fr.results, nil)
	}
	old := fr.results[i]
	if old != nil && v != nil && len(old.reads) == 1 && len(v.reads) == 1 && fr.depth > 1 {
		a, b := old.reads[0].root(), v.reads[0].root()
		split := (a.place >= 0) != (b.place >= 0)
		if split && (len(a.names) == 0 || len(b.names) == 0) || !old.derived && !v.derived && (a.place < 0 || b.place < 0) {
			fr.f.merge(a, b)
		}
	}
	fr.results[i] = fr.f.join(old, v)
}

// fails reports whether statements end the function with an error, soft whether they end it with false for one.
func (fr *frame) fails(list []ast.Stmt) (hard, soft bool) {
	if len(list) == 0 {
		return false, false
	}
	switch s := list[len(list)-1].(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok {
			id, isIdent := ast.Unparen(call.Fun).(*ast.Ident)
			return isIdent && id.Name == "panic", false
		}
	case *ast.ReturnStmt:
		if len(s.Results) == 0 || fr.returns == nil || fr.returns.Len() == 0 {
			return false, false
		}
		last := s.Results[len(s.Results)-1]
		of := fr.returns.At(fr.returns.Len() - 1).Type()
		if types.Identical(of, types.Universe.Lookup("error").Type()) {
			return len(s.Results) == fr.returns.Len() && !isNil(fr.f.info, last), false
		}
		c := fr.f.info.Types[last].Value
		return false, c != nil && c.String() == "false"
	case *ast.BlockStmt:
		return fr.fails(s.List)
	}
	return false, false
}

// ends reports whether statements leave the function.
func ends(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	_, ok := list[len(list)-1].(*ast.ReturnStmt)
	return ok
}

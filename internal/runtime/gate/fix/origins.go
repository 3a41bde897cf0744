package fix

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// An origin is the set of places that a value may come from. It is 0 if the value does not come from decoded JSON.
type origin uint8

const (
	ofArguments origin = 1 << iota // the arguments of the call
	ofElsewhere                    // context, other tools, fetched documents
	ofProgram                      // the program itself, or an unknown place
	ofInts                         // the program itself, with type int
)

// origin returns where the value of an expression comes from. It ignores the order of statements.
func (m *fixer) origin(x ast.Expr) origin { return (&tracer{m, map[types.Object]bool{}}).from(x) }

// A tracer follows values to their origins. It visits each variable and function once.
type tracer struct {
	*fixer
	seen map[types.Object]bool
}

// from returns the origin of an expression, or of what it is an element or a part of.
func (t *tracer) from(e ast.Expr) origin {
	switch e := e.(type) {
	case *ast.Ident:
		if v := t.variable(e); v != nil && !t.seen[v] {
			t.seen[v] = true
			return t.sets(v)
		}
		return 0
	case *ast.ParenExpr:
		return t.from(e.X)
	case *ast.StarExpr:
		return t.from(e.X)
	case *ast.IndexExpr:
		return t.from(e.X)
	case *ast.SliceExpr:
		return t.from(e.X)
	case *ast.TypeAssertExpr:
		return t.from(e.X)
	case *ast.SelectorExpr:
		if from := t.member(e); from != 0 {
			return from
		}
		return t.field(e)
	case *ast.CompositeLit:
		var from origin
		for _, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				el = kv.Value
			}
			from |= t.value(el)
		}
		return from
	case *ast.CallExpr:
		if t.Info.Types[e.Fun].IsType() && isEmptyInterface(t.Info.TypeOf(e.Fun)) {
			return t.value(e.Args[0])
		}
		return t.answer(e)
	}
	return ofProgram
}

// value returns the origin of a value that is converted to any. Only a value of a type that decoded JSON has can come
// from JSON.
func (t *tracer) value(e ast.Expr) origin {
	switch of := types.Default(t.Info.TypeOf(e)); {
	case isEmptyInterface(of), decodedAs(of) != "":
		return t.from(e)
	case isBasic(of, types.UntypedNil):
		return 0
	case types.Identical(of, types.Typ[types.Int]):
		return ofInts
	}
	return ofProgram
}

// sets returns the origin of everything that a variable is set to.
func (t *tracer) sets(v *types.Var) (from origin) {
	ast.Inspect(t.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				ix, element := ast.Unparen(l).(*ast.IndexExpr)
				switch {
				case element && t.variable(ix.X) == v && len(n.Lhs) == len(n.Rhs):
					from |= t.value(n.Rhs[i])
				case t.variable(l) != v:
				case len(n.Lhs) == len(n.Rhs):
					from |= t.from(n.Rhs[i])
				default:
					from |= t.from(n.Rhs[0])
				}
			}
		case *ast.ValueSpec:
			for i, id := range n.Names {
				if t.Info.Defs[id] == v && len(n.Values) > 0 {
					from |= t.from(n.Values[min(i, len(n.Values)-1)])
				}
			}
		case *ast.RangeStmt:
			if n.Value != nil && t.variable(n.Value) == v {
				from |= t.from(n.X)
			}
		case *ast.CaseClause:
			if t.Info.Implicits[n] == v {
				from |= t.from(switched(t.parents[t.parents[n]].(*ast.TypeSwitchStmt)).X)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND && t.variable(n.X) == v {
				// Whoever has the address may set the variable.
				from |= t.decoded(n)
			}
		case *ast.FuncType:
			from |= t.parameter(n, v)
		}
		return true
	})
	return from
}

// decoded returns the origin of the data that fills a variable whose address is taken.
func (t *tracer) decoded(n ast.Expr) origin {
	if c, ok := t.parents[n].(*ast.CallExpr); ok {
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			switch s.Sel.Name {
			case "Bind":
				return ofArguments
			case "Unmarshal", "Decode":
				return ofElsewhere
			}
		}
	}
	return ofProgram
}

// parameter returns the origin of a parameter: the origins of the arguments in all calls of its function.
func (t *tracer) parameter(of *ast.FuncType, v *types.Var) (from origin) {
	for i, p := range fieldsOf(of.Params) {
		if p.id == nil || t.Info.Defs[p.id] != v {
			continue
		}
		f, ok := t.parents[of].(*ast.FuncDecl)
		if !ok || f.Recv != nil {
			return ofProgram
		}
		for id, obj := range t.Info.Uses {
			if obj != t.Info.Defs[f.Name] {
				continue
			}
			c, ok := t.parents[id].(*ast.CallExpr)
			if !ok || c.Fun != id || i >= len(c.Args) {
				return ofProgram
			}
			from |= t.value(c.Args[i])
		}
	}
	return from
}

// member returns the origin of a field or method of the host package, or 0.
func (t *tracer) member(s *ast.SelectorExpr) origin {
	switch owner, name := t.hostMember(s); owner + "." + name {
	case "Call.Args", "Call.Kwargs", "Call.Arg":
		return ofArguments
	case "Call.Context", "Call.Content", "Call.InputHistory", "Call.Predict", "Outcome.Value", "Outcome.Metadata",
		"Record.Args", "Record.Kwargs", "Record.OutcomeSummary", "ToolInfo.Deliverable":
		return ofElsewhere
	}
	return 0
}

// answer returns the origin of the result of a call. For a function that is not the program's, it is the origin of the
// arguments.
func (t *tracer) answer(e *ast.CallExpr) (from origin) {
	switch f := ast.Unparen(e.Fun).(type) {
	case *ast.SelectorExpr:
		if from = t.member(f); from != 0 {
			return from
		}
	case *ast.Ident:
		obj := t.Info.Uses[f]
		if d := t.function(f.Name); d != nil && t.Info.Defs[d.Name] == obj {
			return t.returned(d, obj)
		}
	}
	for i, a := range e.Args {
		if i > 0 && isName(e.Fun, "append") && !e.Ellipsis.IsValid() {
			from |= t.value(a)
		} else if !t.Info.Types[a].IsType() && t.Info.Types[a].Value == nil {
			from |= t.from(a)
		}
	}
	return from
}

// returned returns the origin of the first result of a function.
func (t *tracer) returned(d *ast.FuncDecl, obj types.Object) (from origin) {
	if t.seen[obj] {
		return 0
	}
	t.seen[obj] = true
	ast.Inspect(d, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 && !isName(r.Results[0], "nil") {
			from |= t.value(r.Results[0])
		}
		_, lit := n.(*ast.FuncLit)
		return !lit
	})
	return from
}

// hostMember returns the type of the host package and the name of its member that is selected, or two empty strings.
func (m *fixer) hostMember(s *ast.SelectorExpr) (owner, name string) {
	t := m.Info.TypeOf(s.X)
	if t == nil {
		return "", ""
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || !ofHost(n.Obj()) {
		return "", ""
	}
	return n.Obj().Name(), s.Sel.Name
}

// ofHost reports whether the object belongs to the host package.
func ofHost(obj types.Object) bool {
	return obj != nil && obj.Pkg() != nil && (obj.Pkg().Path() == host || strings.HasSuffix(obj.Pkg().Path(), "/"+host))
}

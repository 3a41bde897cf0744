// Package inputs reads off a type-checked program what it takes of its call, and what it returns.
//
// It is a scan of the places where the program uses Arg, Bind, Args and Kwargs of the call (places.go). A place reads one parameter for each name and position that the
// text gives it: as a constant, by a loop over names that are written out, or in the calls of a function of the program's own (ways.go). The parameter has a type
// where its value is only converted (values.go), and is required where Run plainly ends without it (needed.go). What the text does not say is not claimed: then the type is
// any, the parameter is not required, and the interface is open or takes a list of positions.
package inputs

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Of returns what the program in file takes and returns. An interface without parameters that is open is the worst answer.
func Of(file *ast.File, info *types.Info) *Interface {
	s := newScan(file, info)
	if s.run == nil || s.run.Body == nil {
		return unknown()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && !info.Types[e].IsType() && isCall(info.TypeOf(e)) {
			s.ofCall(e)
		}
		return true
	})
	out := s.assemble()
	out.Returns = s.returns(s.run)
	return out
}

// A scan is one look at a program.
type scan struct {
	info    *types.Info
	run     *ast.FuncDecl
	parents map[ast.Node]ast.Node
	uses    map[types.Object][]*ast.Ident
	set     map[types.Object][]ast.Expr // what is put into a variable; nil for what is no expression of its own
	// the program's own functions: declarations, and literals that are all that a variable holds
	decls map[types.Object]ast.Node
	names map[ast.Node]types.Object // theirs
	ways  map[ast.Node][]*way       // into them
	made  int                       // of ways

	looked   map[ast.Expr]bool // whose uses by another name were looked at
	reads    []*read
	landed   map[landing]*read
	fallback map[ast.Expr]*read // of expressions whose value takes the place of a missing one
	rest     *read              // the elements of all positions from restFrom on
	restFrom int
	minimum  int  // of positional arguments: the program fails with fewer
	open     bool // it may read keywords that are not listed
}

func newScan(file *ast.File, info *types.Info) *scan {
	s := &scan{info: info, parents: map[ast.Node]ast.Node{}, uses: map[types.Object][]*ast.Ident{},
		set: map[types.Object][]ast.Expr{}, decls: map[types.Object]ast.Node{},
		names: map[ast.Node]types.Object{}, ways: map[ast.Node][]*way{}, landed: map[landing]*read{},
		fallback: map[ast.Expr]*read{}, looked: map[ast.Expr]bool{}}
	var around []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		if len(around) > 0 {
			s.parents[n] = around[len(around)-1]
		}
		around = append(around, n)
		s.index(n)
		return true
	})
	for obj := range s.set {
		if lit, ok := s.single(obj).(*ast.FuncLit); ok {
			s.decls[obj], s.names[lit] = lit, obj
		}
	}
	return s
}

// index notes what a node says of variables and functions.
func (s *scan) index(n ast.Node) {
	switch n := n.(type) {
	case *ast.Ident:
		if obj := s.info.Uses[n]; obj != nil {
			s.uses[origin(obj)] = append(s.uses[origin(obj)], n)
		}
	case *ast.FuncDecl:
		obj := s.info.Defs[n.Name]
		s.decls[obj], s.names[n] = n, obj
		if n.Recv == nil && n.Name.Name == "Run" {
			s.run = n
		}
	case *ast.AssignStmt, *ast.ValueSpec:
		to, values := sides(n)
		a, isAssignment := n.(*ast.AssignStmt)
		plain := len(to) == len(values) && (!isAssignment || a.Tok == token.DEFINE || a.Tok == token.ASSIGN)
		for i := range to {
			var value ast.Expr
			if _, element := first(values).(*ast.IndexExpr); plain || element && i == 0 { // v, ok := m[k]
				value = values[i]
			}
			s.assigned(to[i], value)
		}
	case *ast.IncDecStmt:
		s.assigned(n.X, nil)
	case *ast.RangeStmt:
		s.assigned(n.Key, nil)
		s.assigned(n.Value, nil)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			s.assigned(n.X, nil)
		}
	}
}

// assigned notes that a variable, or a part of what it holds, gets a value.
func (s *scan) assigned(to, value ast.Expr) {
	switch x := to.(type) {
	case *ast.Ident:
		if obj := s.info.ObjectOf(x); obj != nil {
			s.set[obj] = append(s.set[obj], value)
		}
	case *ast.IndexExpr:
		s.assigned(x.X, nil)
	case *ast.SelectorExpr:
		s.assigned(x.X, nil)
	}
}

// sides are what an assignment or a declaration sets, and to what.
func sides(n ast.Node) (to, values []ast.Expr) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs, n.Rhs
	case *ast.ValueSpec:
		for _, name := range n.Names {
			to = append(to, name)
		}
		return to, n.Values
	}
	return nil, nil
}

func first(list []ast.Expr) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// single is the one expression that a variable ever holds, or nil.
func (s *scan) single(obj types.Object) ast.Expr {
	if values := s.set[obj]; len(values) == 1 {
		return values[0]
	}
	return nil
}

// object is the variable that an expression names, or nil.
func (s *scan) object(e ast.Expr) types.Object {
	if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
		return s.info.ObjectOf(id)
	}
	return nil
}

// up returns an expression with the parentheses around it, and what stands around that.
func (s *scan) up(e ast.Expr) (ast.Expr, ast.Node) {
	for {
		p, ok := s.parents[e].(*ast.ParenExpr)
		if !ok {
			return e, s.parents[e]
		}
		e = p
	}
}

// origin is the function that a generic one is an instance of, and any other object itself.
func origin(obj types.Object) types.Object {
	if fn, ok := obj.(*types.Func); ok {
		return fn.Origin()
	}
	return obj
}

// isCall reports whether the type is that of the call, or of a pointer to it.
func isCall(t types.Type) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == allow.HostPath && n.Obj().Name() == "Call"
}

// Package inputs infers from a type-checked program what it takes from its call and what it returns.
//
// It scans the places where the program uses Arg, Bind, Args and Kwargs of the call (places.go). A place reads one
// parameter for each name and position that the text gives it: as a constant, through a loop over a literal list of
// names, or through calls of one of the program's own functions (ways.go). The parameter has a type if its value is
// only converted (values.go), and is required if Run evidently fails without it (needed.go). The package claims nothing
// beyond that: otherwise the type is any, the parameter is not required, and the interface is open or takes a list of
// positional arguments.
package inputs

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// Of returns what the program in file takes and returns. If nothing can be inferred, the interface is open and has no
// parameters.
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

// A scan is the state of one analysis of a program.
type scan struct {
	info    *types.Info
	run     *ast.FuncDecl
	parents map[ast.Node]ast.Node
	uses    map[types.Object][]*ast.Ident
	set     map[types.Object][]ast.Expr // values assigned to a variable; nil for one that is not a single expression
	// decls has the program's own functions: declarations, and literals that are the only value of a variable.
	decls map[types.Object]ast.Node
	names map[ast.Node]types.Object // the objects of decls
	ways  map[ast.Node][]*way       // ways into the functions of decls
	made  int                       // number of ways created so far

	looked map[ast.Expr]bool // expressions whose aliases were followed
	reads  []*read
	// landed has the last read that landed in a place. A second one by the other kind of access is the same parameter.
	landed   map[landing]*read
	fallback map[ast.Expr]*read // expressions whose value replaces a missing one
	rest     *read              // the elements of all positions from restFrom on; nil if they are not read
	restFrom int
	minimum  int  // number of positional arguments below which the program fails
	open     bool // the program may read keywords that are not listed
}

// newScan indexes the file. The index is complete before any place is examined.
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

// index records the uses, declarations and assignments in a node.
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

// assigned records that a variable, or a part of it, gets a value.
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

// sides returns the operands on the left and the values of an assignment or declaration.
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

// first returns the first expression of a list, or nil.
func first(list []ast.Expr) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// single returns the only expression that a variable ever holds, or nil.
func (s *scan) single(obj types.Object) ast.Expr {
	if values := s.set[obj]; len(values) == 1 {
		return values[0]
	}
	return nil
}

// object returns the variable that an expression names, or nil.
func (s *scan) object(e ast.Expr) types.Object {
	if id, ok := e.(*ast.Ident); ok && id.Name != "_" {
		return s.info.ObjectOf(id)
	}
	return nil
}

// up returns the expression with its enclosing parentheses, and the node around that.
func (s *scan) up(e ast.Expr) (ast.Expr, ast.Node) {
	for {
		p, ok := s.parents[e].(*ast.ParenExpr)
		if !ok {
			return e, s.parents[e]
		}
		e = p
	}
}

// origin returns the generic function that obj is an instance of, or obj itself.
func origin(obj types.Object) types.Object {
	if fn, ok := obj.(*types.Func); ok {
		return fn.Origin()
	}
	return obj
}

// isCall reports whether t is the type of the call or a pointer to it.
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

package order

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
)

// A surveyor collects the facts that need a look at the whole file.
type surveyor struct {
	info    *types.Info
	shared  map[types.Object]bool              // variables that a call may change: package variables, captured ones, those whose address is taken
	gotos   map[*types.Label][]*ast.BranchStmt // by target
	left    map[*types.Label]bool              // targets of break and continue
	results map[*ast.ReturnStmt]*types.Tuple   // result types of the function that contains the statement
	places  map[*ast.IndexExpr]bool            // elements that are assigned to or whose address is taken
	imports map[string][]string                // names by path
	outer   []ast.Node                         // functions around the visited node, innermost last
}

func survey(file *ast.File, info *types.Info) surveyor {
	s := surveyor{info: info, shared: map[types.Object]bool{}, gotos: map[*types.Label][]*ast.BranchStmt{}, left: map[*types.Label]bool{},
		places: map[*ast.IndexExpr]bool{}, results: map[*ast.ReturnStmt]*types.Tuple{}, imports: map[string][]string{}}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if spec.Name != nil {
			s.imports[path] = append(s.imports[path], spec.Name.Name)
		} else if p, ok := info.Implicits[spec].(*types.PkgName); ok {
			s.imports[path] = append(s.imports[path], p.Name())
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			s.function(f, f.Body)
		} else {
			ast.Inspect(d, s.visit)
		}
	}
	return s
}

func (s *surveyor) function(f ast.Node, body *ast.BlockStmt) {
	s.outer = append(s.outer, f)
	ast.Inspect(body, s.visit)
	s.outer = s.outer[:len(s.outer)-1]
}

func (s *surveyor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		s.function(n, n.Body)
		return false
	case *ast.ReturnStmt:
		s.results[n] = s.signature().Results()
	case *ast.BranchStmt:
		if n.Label == nil {
			break
		}
		if label, _ := s.info.Uses[n.Label].(*types.Label); n.Tok == token.GOTO {
			s.gotos[label] = append(s.gotos[label], n)
		} else {
			s.left[label] = true
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			s.share(n.X)
		}
	case *ast.SliceExpr:
		s.share(n.X)
	case *ast.AssignStmt:
		for _, l := range n.Lhs {
			s.locate(l)
		}
	case *ast.IncDecStmt:
		s.locate(n.X)
	case *ast.RangeStmt:
		s.locate(n.Key)
		s.locate(n.Value)
	case *ast.SelectorExpr:
		if sel := s.info.Selections[n]; sel != nil && sel.Kind() == types.MethodVal {
			s.share(n.X)
		}
	case *ast.Ident:
		if v, ok := s.info.Uses[n].(*types.Var); ok && s.foreign(v) {
			s.shared[v] = true
		}
	}
	return true
}

// signature returns the type of the innermost function.
func (s *surveyor) signature() *types.Signature {
	switch f := s.outer[len(s.outer)-1].(type) {
	case *ast.FuncDecl:
		return s.info.Defs[f.Name].Type().(*types.Signature)
	case *ast.FuncLit:
		return s.info.Types[f].Type.(*types.Signature)
	}
	return nil
}

// foreign reports whether a variable is declared outside of the innermost function.
func (s *surveyor) foreign(v *types.Var) bool {
	if v.IsField() {
		return false
	}
	if len(s.outer) == 0 {
		return true
	}
	f := s.outer[len(s.outer)-1]
	return v.Pos() < f.Pos() || v.Pos() > f.End()
}

// share notes that the variable to which an expression belongs may have its address taken.
func (s *surveyor) share(e ast.Expr) {
	if id := s.locate(e); id != nil {
		if v, ok := s.info.Uses[id].(*types.Var); ok {
			s.shared[v] = true
		}
	}
}

// locate notes that an expression denotes a location, not a value, and returns the variable that contains the location, or nil.
func (s *surveyor) locate(e ast.Expr) *ast.Ident {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return s.locate(x.X)
	case *ast.SelectorExpr:
		return s.locate(x.X)
	case *ast.IndexExpr:
		s.places[x] = true
		return s.locate(x.X)
	case *ast.Ident:
		return x
	}
	return nil
}

package interp

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ssa"
)

// numberLocals numbers the types that the functions of a package declare, in source order. The toolchain appends the number to such a type's name where
// it is a type argument.
func (tt *typeTable) numberLocals(files []*ast.File) {
	var at []token.Pos
	for _, f := range files {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok && !s.Assign.IsValid() {
					at = append(at, s.Name.Pos())
				}
				return true
			})
		}
	}
	slices.Sort(at) // package order may have moved statements
	for i, pos := range at {
		tt.numbers[pos] = i + 1
	}
}

// number returns the suffix that the toolchain appends to the name of a type that a function declares, "" for other types.
func (tt *typeTable) number(o *types.TypeName) string {
	if n := tt.numbers[o.Pos()]; n > 0 && o.Parent() != o.Pkg().Scope() {
		return "·" + strconv.Itoa(n)
	}
	return ""
}

// noteLocals finds the types that f uses and that an instance of a generic function declares, where f is that instance or a function within it. The
// names of these types include the instance's type arguments, which go/ssa does not record. It must be called before any of the types is made.
func (tt *typeTable) noteLocals(f *ssa.Function) {
	root := f
	for root.Parent() != nil {
		root = root.Parent()
	}
	if len(root.TypeArgs()) == 0 || root.Syntax() == nil {
		return
	}
	s := &localSearch{tt: tt, root: root, seen: map[types.Type]bool{}}
	s.visit(f.Signature)
	for _, b := range f.Blocks {
		for _, in := range b.Instrs {
			for _, v := range in.Operands(nil) {
				s.value(*v)
			}
			if v, ok := in.(ssa.Value); ok {
				s.value(v)
			}
			if a, ok := in.(*ssa.TypeAssert); ok {
				s.visit(a.AssertedType)
			}
		}
	}
}

// A localSearch looks through types for those that root declares.
type localSearch struct {
	tt   *typeTable
	root *ssa.Function
	seen map[types.Type]bool
}

func (s *localSearch) value(v ssa.Value) {
	if v == nil {
		return
	}
	s.visit(v.Type())
	if f, ok := v.(*ssa.Function); ok {
		for _, a := range f.TypeArgs() {
			s.visit(a)
		}
	}
}

func (s *localSearch) visit(t types.Type) {
	if t == nil || s.seen[t] {
		return
	}
	s.seen[t] = true
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			s.visit(a)
		}
		// go/ssa makes such a type anew for each instance, outside of any scope.
		if o := t.Obj(); o.Parent() == nil && s.root.Syntax().Pos() <= o.Pos() && o.Pos() < s.root.Syntax().End() {
			s.tt.locals[o] = s.root.TypeArgs()
			s.visit(t.Underlying())
		}
	case *types.Map:
		s.visit(t.Key())
		s.visit(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			s.visit(f.Type())
		}
	case *types.Signature:
		s.visit(t.Params())
		s.visit(t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			s.visit(v.Type())
		}
	case interface{ Elem() types.Type }:
		s.visit(t.Elem())
	}
}

package gate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"iter"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// heldPolicy refuses every expression whose type mentions a type that programs cannot import. Such values are reachable
// without an import: a method of reflect.Value yields an unsafe.Pointer. A program that cannot hold such a value can
// neither select its methods nor convert it to an interface and assert methods that it declares itself.
func (c *check) heldPolicy() *Refusal {
	h := holder{check: c, known: map[types.Type]*types.TypeName{}}
	ast.Inspect(c.file, h.visit)
	if h.at == nil {
		return nil
	}
	return c.refuse(dependencyPolicy, h.at.Pos(), fmt.Sprintf("a value of type %s.%s is not available to programs: %s",
		h.what.Pkg().Name(), h.what.Name(),
		clipLine(types.ExprString(h.at))), heldHint(h.what))
}

// heldHint suggests what to use in place of an unavailable type.
func heldHint(what *types.TypeName) string {
	path := allow.SeenPath(what.Pkg().Path())
	if p, ok := allow.Find(path); ok {
		return p.Instead(what.Name())
	}
	return importHint(path)
}

// A holder searches for the innermost first expression of an unavailable type.
type holder struct {
	*check
	known map[types.Type]*types.TypeName // results of mentioned; nil for an available type
	at    ast.Expr
	what  *types.TypeName
}

// visit examines one expression. A call that only prints may have an unavailable value selected in its arguments.
func (h *holder) visit(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	if call, ok := e.(*ast.CallExpr); ok && h.prints(call) {
		for _, arg := range call.Args {
			if s, ok := ast.Unparen(arg).(*ast.SelectorExpr); ok && h.selects(s) == nil {
				ast.Inspect(s.X, h.visit)
			} else {
				ast.Inspect(arg, h.visit)
			}
		}
		return false
	}
	what := h.mentioned(h.info.Types[e].Type)
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if what == nil {
			what = h.selects(e)
		}
	case *ast.Ident:
		// An inferred type argument need not be the type of any expression.
		what = cmp.Or(what, h.list(h.info.Instances[e].TypeArgs))
	}
	// Of nested expressions the innermost is the most precise.
	if what != nil && (h.at == nil || e.End() <= h.at.End()) {
		h.at, h.what = e, what
	}
	return true
}

// prints reports whether the call is a fmt function that prints its arguments and keeps none of them.
func (h *holder) prints(call *ast.CallExpr) bool {
	s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || call.Ellipsis != token.NoPos {
		return false
	}
	f, ok := h.info.Uses[s.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != "fmt" || f.Signature().Recv() != nil {
		return false
	}
	switch f.Name() {
	case "Sprint", "Sprintf", "Sprintln", "Fprint", "Fprintf", "Fprintln", "Print", "Printf", "Println", "Errorf",
		"Append", "Appendf", "Appendln":
		return true
	}
	return false
}

// selects returns the first unavailable type among the embedded fields that a selector passes through, or nil.
func (h *holder) selects(e *ast.SelectorExpr) *types.TypeName {
	sel := h.info.Selections[e]
	if sel == nil {
		return nil
	}
	t := sel.Recv()
	path := sel.Index()
	for _, i := range path[:len(path)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok {
			return nil
		}
		t = s.Field(i).Type()
		if what := h.mentioned(t); what != nil {
			return what
		}
	}
	return nil
}

// mentioned returns an unavailable type that t is or consists of, or nil. It looks only at the parts that a holder of t
// can reach without a selector.
func (h *holder) mentioned(t types.Type) *types.TypeName {
	if t == nil {
		return nil
	}
	if what, ok := h.known[t]; ok {
		return what
	}
	h.known[t] = nil // ends the walk of an unnamed interface whose methods lead back to it
	what := h.heldPart(t)
	h.known[t] = what
	return what
}

// heldPart examines the parts of a type. Named types of other packages are either available or not as a whole.
func (h *holder) heldPart(t types.Type) *types.TypeName {
	switch t := t.(type) {
	case *types.Alias:
		if obj := t.Obj(); obj.Pkg() != nil && obj.Pkg() != h.pkg && h.gate.lib.names(obj) {
			return h.list(t.TypeArgs())
		}
		return h.mentioned(types.Unalias(t))
	case *types.Basic:
		if t.Kind() == types.UnsafePointer {
			return types.Unsafe.Scope().Lookup("Pointer").(*types.TypeName)
		}
	case *types.Named:
		if obj := t.Obj(); obj.Pkg() != nil && obj.Pkg() != h.pkg && !h.gate.lib.names(obj) &&
			!h.gate.lib.aliased(obj) {
			return obj
		}
		return h.list(t.TypeArgs())
	case *types.Map:
		return cmp.Or(h.mentioned(t.Key()), h.mentioned(t.Elem()))
	case *types.Tuple:
		return firstHeld(h, t.Variables())
	case *types.Signature:
		return cmp.Or(h.mentioned(t.Params()), h.mentioned(t.Results()))
	case *types.Struct:
		return firstHeld(h, t.Fields())
	case *types.Interface:
		return firstHeld(h, t.Methods())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return h.mentioned(t.Elem())
	}
	return nil
}

// firstHeld returns the first unavailable type that the type of a part mentions, or nil.
func firstHeld[O types.Object](h *holder, parts iter.Seq[O]) *types.TypeName {
	for part := range parts {
		if what := h.mentioned(part.Type()); what != nil {
			return what
		}
	}
	return nil
}

// list returns the first unavailable type among type arguments, or nil.
func (h *holder) list(l *types.TypeList) *types.TypeName {
	for i := range l.Len() {
		if what := h.mentioned(l.At(i)); what != nil {
			return what
		}
	}
	return nil
}

// names reports whether programs may name a type: its package is allowed and does not hide it. Unexported types belong
// to their package, such as the type of binary.LittleEndian; they are allowed if the package shows all its names.
func (l *library) names(obj *types.TypeName) bool {
	p, ok := l.allowed[allow.SeenPath(obj.Pkg().Path())]
	return ok && (p.Shows(obj.Name()) || !obj.Exported() && len(p.Only) == 0)
}

// aliased reports whether an allowed package has an alias for a type of another package, by which programs may name it.
func (l *library) aliased(obj *types.TypeName) bool {
	if l.aliases == nil {
		l.aliases = map[*types.TypeName]bool{}
		for path := range l.allowed {
			pkg, err := l.load(path)
			if err != nil {
				continue // programs cannot name anything in it either
			}
			for _, name := range pkg.Scope().Names() {
				tn, ok := pkg.Scope().Lookup(name).(*types.TypeName)
				if !ok || !tn.IsAlias() {
					continue
				}
				if n, ok := types.Unalias(tn.Type()).(*types.Named); ok {
					l.aliases[n.Obj()] = true
				}
			}
		}
	}
	return l.aliases[obj]
}

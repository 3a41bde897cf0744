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

// heldPolicy refuses every expression whose type mentions one that no program can import. Such values are within reach without an import:
// the error of encoding/json for a cycle has a field of type reflect.Value, whose method UnsafePointer yields raw memory. A program
// that cannot hold such a value cannot select its methods either, nor turn it into an interface and assert methods of its own spelling.
func (c *check) heldPolicy() *Refusal {
	h := holder{check: c, known: map[types.Type]*types.TypeName{}}
	ast.Inspect(c.file, h.visit)
	if h.at == nil {
		return nil
	}
	return c.refuse(DependencyPolicy, h.at.Pos(), fmt.Sprintf("a value of type %s.%s is not available to programs: %s",
		h.what.Pkg().Name(), h.what.Name(),
		clipLine(types.ExprString(h.at))), heldHint(h.what))
}

func heldHint(what *types.TypeName) string {
	if what.Pkg().Path() == "reflect" {
		return "Use the error's text and its other fields, or pass the field straight to a printing function of fmt. " +
			symbolHint("reflect")
	}
	return symbolHint(what.Pkg().Path())
}

// A holder looks for the first expression of a type that is not available.
type holder struct {
	*check
	known map[types.Type]*types.TypeName // of types that were looked at; nil for an available one
	at    ast.Expr
	what  *types.TypeName
}

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
		what = cmp.Or(what, h.list(h.info.Instances[e].TypeArgs)) // an inferred one need be of no expression's type
	}
	// Of nested expressions the innermost is the most precise.
	if what != nil && (h.at == nil || e.End() <= h.at.End()) {
		h.at, h.what = e, what
	}
	return true
}

// prints reports whether the call prints its arguments and keeps none of them.
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

// selects returns the type that is not available that a selector passes through by embedded fields.
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

// mentioned returns a type that is not available and that t is, or is made of as far as its holder can take it apart
// without a selector.
func (h *holder) mentioned(t types.Type) *types.TypeName {
	if t == nil {
		return nil
	}
	if what, ok := h.known[t]; ok {
		return what
	}
	h.known[t] = nil // ends the walk of an interface without a name whose methods lead back to it
	what := h.heldPart(t)
	h.known[t] = what
	return what
}

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

// firstHeld returns the first unavailable type that a part's type mentions.
func firstHeld[O types.Object](h *holder, parts iter.Seq[O]) *types.TypeName {
	for part := range parts {
		if what := h.mentioned(part.Type()); what != nil {
			return what
		}
	}
	return nil
}

func (h *holder) list(l *types.TypeList) *types.TypeName {
	for i := range l.Len() {
		if what := h.mentioned(l.At(i)); what != nil {
			return what
		}
	}
	return nil
}

// names reports whether programs may name a type: its package is allowed and holds it back from nobody. Types that nobody exports are
// part of their package: binary.LittleEndian is of one.
func (l *library) names(obj *types.TypeName) bool {
	p, ok := l.allowed[allow.SeenPath(obj.Pkg().Path())]
	return ok && (p.Shows(obj.Name()) || !obj.Exported() && len(p.Only) == 0)
}

// aliased reports whether programs may name a type of another package by an alias in an allowed one.
func (l *library) aliased(obj *types.TypeName) bool {
	if l.aliases == nil {
		l.aliases = map[*types.TypeName]bool{}
		for path := range l.allowed {
			pkg, err := l.load(path)
			if err != nil {
				continue // nothing of it can be named then
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

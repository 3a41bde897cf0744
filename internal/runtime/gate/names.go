package gate

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// libraryName returns the allowed package that declares an object, and the object's name as package allow writes it:
// methods have their type before them. The name is "" for anything else.
func libraryName(o types.Object) (p allow.Package, name string) {
	if o == nil || o.Pkg() == nil {
		return p, ""
	}
	p, ok := allow.Find(allow.SeenPath(o.Pkg().Path()))
	if !ok {
		return p, ""
	}
	f, isFunc := o.(*types.Func)
	if !isFunc || f.Signature().Recv() == nil {
		if o.Parent() != o.Pkg().Scope() {
			return p, ""
		}
		return p, o.Name()
	}
	t := types.Unalias(f.Signature().Recv().Type())
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	if n, ok := t.(*types.Named); ok {
		return p, n.Obj().Name() + "." + f.Name()
	}
	return p, ""
}

// namePolicy records a fault for each method that programs cannot use, and for each call that would read a file because
// it has no text. The importer leaves out other names that programs cannot use.
func (c *check) namePolicy() {
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if p, name := libraryName(c.info.Uses[n.Sel]); name != "" && !p.Shows(name) && len(p.Only) == 0 {
				c.fault(dependencyPolicy, n.Sel.Pos(), fmt.Sprintf("%s.%s is not available to programs", p.Name(), name),
					p.Instead(name))
			}
		case *ast.CallExpr:
			if name := c.readsFile(n); name != "" {
				c.fault(dependencyPolicy, n.Pos(), name+" reads a file where its source is nil",
					"Programs have no files: pass the text as the source.")
			}
		}
		return true
	})
}

// readsFile returns the name of a function that a call has read a file instead of a text, or "".
func (c *check) readsFile(call *ast.CallExpr) string {
	const source = 2 // index of the parameter
	s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || len(call.Args) <= source || !c.info.Types[call.Args[source]].IsNil() {
		return ""
	}
	p, name := libraryName(c.info.Uses[s.Sel])
	if p.Path == "go/parser" && slices.Contains([]string{"ParseFile", "ParseExprFrom"}, name) {
		return "parser." + name
	}
	return ""
}

package gate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// syntaxPolicy judges what the syntax tree alone shows, and repairs what is harmless.
func (c *check) syntaxPolicy() *Refusal {
	if r := c.boundTree(); r != nil {
		return r
	}
	c.file.Name.Name = "tool" // whatever the model called its package
	for _, group := range c.file.Comments {
		for _, comment := range group.List {
			if d := strings.TrimSpace(strings.TrimPrefix(comment.Text,
				"//")); strings.HasPrefix(comment.Text, "//go:") ||
				strings.HasPrefix(comment.Text, "//export ") || strings.HasPrefix(comment.Text, "// +build") {
				c.fault(invalidCode, comment.Pos(), "compiler directives are not allowed: "+clipLine(d),
					"Remove the directive.")
			}
		}
	}
	c.importPolicy()
	c.declPolicy()
	ast.Inspect(c.file, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			c.fault(invalidCode, g.Pos(), "go statements are not allowed",
				"A program has one goroutine: do one step after the other.")
		}
		return true
	})
	c.choosePage()
	c.addImports()
	return nil
}

// importPolicy records a fault for each import that is not allowed.
func (c *check) importPolicy() {
	for _, spec := range c.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		_, known := c.gate.lib.allowed[path]
		switch {
		case err != nil:
			c.fault(invalidCode, spec.Pos(), "an import path is not a string", "")
		case !known:
			c.fault(dependencyPolicy, spec.Pos(), fmt.Sprintf("package %q is not available to programs",
				clipLine(path)), importHint(path))
		case spec.Name != nil && spec.Name.Name == ".":
			c.fault(dependencyPolicy, spec.Pos(), "dot imports are not allowed", "Import the package under its name.")
		}
	}
}

// declPolicy requires a function Run, and rejects init functions and functions without a body.
func (c *check) declPolicy() {
	var run *ast.FuncDecl
	for _, d := range c.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil {
			continue
		}
		switch f.Name.Name {
		case "init":
			c.fault(invalidCode, f.Pos(), "init functions are not allowed",
				"Initialise package variables where they are declared, or in Run.")
		case "Run":
			run = f
		}
		if f.Body == nil {
			c.fault(invalidCode, f.Pos(), "function "+f.Name.Name+" has no body", "Write the function in Go.")
		}
	}
	if run == nil {
		c.fault(invalidCode, token.NoPos, "the program has no function Run", "Declare "+allow.RunForm+".")
	}
}

// typePolicy judges what needs types: generic instances, and changes to variables of other packages.
func (c *check) typePolicy() *Refusal {
	if r := c.instancePolicy(); r != nil {
		return r
	}
	c.namePolicy()
	// touch records a fault if the expression is a variable of another package: its change would be visible to the next
	// program in the same process.
	touch := func(e ast.Expr, what string) {
		if v := c.foreignVar(e); v != nil {
			c.fault(toolRegistry, e.Pos(), fmt.Sprintf("%s of %s.%s, a variable of another package, is not allowed",
				what, v.Pkg().Name(), v.Name()),
				"Keep a variable of your own.")
		}
	}
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					touch(e, "assignment")
				}
			}
		case *ast.IncDecStmt:
			touch(n.X, "assignment")
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				touch(n.X, "taking the address")
			}
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				touch(n.Key, "assignment")
				touch(n.Value, "assignment")
			}
		case *ast.CallExpr:
			if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && len(n.Args) > 0 {
				if b, ok := c.info.Uses[id].(*types.Builtin); ok && slices.Contains([]string{"delete", "clear", "copy"}, b.Name()) {
					touch(n.Args[0], "change")
				}
			}
		}
		return true
	})
	return c.refusal("")
}

// foreignVar returns the variable of another package that an expression is or is a part of, or nil.
func (c *check) foreignVar(e ast.Expr) *types.Var {
	for e != nil {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := c.info.Uses[x.Sel].(*types.Var); ok && !v.IsField() && v.Pkg() != c.pkg {
				return v
			}
			e = x.X
		default:
			return nil
		}
	}
	return nil
}

// runPolicy requires Run to have the signature that the runner calls.
func (c *check) runPolicy() {
	run, ok := c.pkg.Scope().Lookup("Run").(*types.Func)
	if !ok {
		return // declPolicy has reported it
	}
	sig := run.Signature()
	if strings.Contains(types.TypeString(sig, packageName), "invalid type") {
		return // uses a package that is not available or an undefined name, which is reported elsewhere
	}
	good := sig.TypeParams().Len() == 0 && sig.Params().Len() == 1 && sig.Results().Len() == 2 && !sig.Variadic()
	if good {
		ptr, isPtr := types.Unalias(sig.Params().At(0).Type()).(*types.Pointer)
		good = isPtr && isHostType(ptr.Elem(), "Call")
		first, isIface := sig.Results().At(0).Type().Underlying().(*types.Interface)
		good = good && isIface && first.Empty() && types.Identical(types.Unalias(sig.Results().At(1).Type()),
			types.Universe.Lookup("error").Type())
		_, isNamed := types.Unalias(sig.Results().At(0).Type()).(*types.Named)
		good = good && !isNamed
	}
	if !good {
		c.fault(invalidCode, run.Pos(), "Run has the wrong signature: "+
			strings.TrimPrefix(types.TypeString(sig, packageName), "func"), "Declare "+allow.RunForm+".")
	}
}

func packageName(p *types.Package) string { return p.Name() }

// isHostType reports whether t is the type of that name in the host package.
func isHostType(t types.Type, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == allow.HostPath && n.Obj().Name() == name
}

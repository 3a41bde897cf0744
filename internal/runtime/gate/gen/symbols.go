package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// symbolTables collects, for each package, what its exported names are at run time.
type symbolTables struct {
	imports, cases, funcs bytes.Buffer
}

// source returns the Go file of all tables.
func (s *symbolTables) source() string {
	return header("symbols") + "import (\n\t\"reflect\"\n\n" + s.imports.String() + ")\n\n" +
		"func table(path string) map[string]any {\n\tswitch path {\n" + s.cases.String() + "\t}\n\treturn nil\n}\n" + s.funcs.String()
}

func (s *symbolTables) add(p allow.Package, pkg *types.Package) {
	name := strings.ReplaceAll(p.Path, "/", "_")
	fmt.Fprintf(&s.imports, "\tpkg_%s %q\n", name, realPath(p.Path))
	fmt.Fprintf(&s.cases, "\tcase %q:\n\t\treturn %sTable()\n", p.Path, name)
	fmt.Fprintf(&s.funcs, "\nfunc %sTable() map[string]any {\n\treturn map[string]any{\n", name)
	seen := map[string]bool{}
	for _, symbol := range pkg.Scope().Names() {
		if ast.IsExported(symbol) {
			s.symbol(p, "pkg_"+name+"."+symbol, pkg.Scope().Lookup(symbol), seen)
		}
	}
	s.funcs.WriteString("\t}\n}\n")
}

// symbol writes the entry of one exported name, which the expression yields.
func (s *symbolTables) symbol(p allow.Package, expr string, obj types.Object, seen map[string]bool) {
	switch obj := obj.(type) {
	case *types.Func:
		if p.Shows(obj.Name()) && obj.Signature().TypeParams().Len() == 0 {
			fmt.Fprintf(&s.funcs, "\t\t%q: %s,\n", obj.Name(), expr)
		}
	case *types.Var:
		if !p.Shows(obj.Name()) {
			return
		}
		fmt.Fprintf(&s.funcs, "\t\t%q: &%s,\n", obj.Name(), expr)
		if hidden := unexportedType(obj); hidden != "" && !seen[hidden] {
			seen[hidden] = true
			fmt.Fprintf(&s.funcs, "\t\t%q: reflect.TypeOf(%s)%s,\n", hidden, expr, elemOf(obj.Type()))
		}
	case *types.TypeName:
		// Hidden types too: values of them reach programs through visible functions.
		if named, ok := obj.Type().(*types.Named); ok && named.TypeParams().Len() > 0 || obj.IsAlias() {
			return
		}
		if iface, ok := obj.Type().Underlying().(*types.Interface); ok && !iface.IsMethodSet() {
			return
		}
		fmt.Fprintf(&s.funcs, "\t\t%q: reflect.TypeFor[%s](),\n", obj.Name(), expr)
	}
}

// unexportedType returns the name of the unexported type of a variable, or "": programs call its methods.
func unexportedType(v *types.Var) string {
	t := v.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok && !n.Obj().Exported() && n.Obj().Pkg() == v.Pkg() {
		return n.Obj().Name()
	}
	return ""
}

func elemOf(t types.Type) string {
	if _, ok := t.(*types.Pointer); ok {
		return ".Elem()"
	}
	return ""
}

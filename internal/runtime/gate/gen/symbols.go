package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
)

// symbolTables collects, for each package, the run-time values of its exported names.
type symbolTables struct {
	imports, cases, funcs bytes.Buffer
	// foreign holds types of packages that are not allowed but have an alias in one that is: package path to type name
	// to expression.
	foreign map[string]map[string]string
}

// source returns the Go source file of all tables.
func (s *symbolTables) source() string {
	for _, path := range slices.Sorted(maps.Keys(s.foreign)) {
		s.open(path)
		for _, symbol := range slices.Sorted(maps.Keys(s.foreign[path])) {
			fmt.Fprintf(&s.funcs, "\t\t%q: %s,\n", symbol, s.foreign[path][symbol])
		}
		s.close()
	}
	return header("symbols") +
		"//lint:file-ignore SA1019 programs may use what is deprecated\n\nimport (\n\t\"reflect\"\n\n" +
		s.imports.String() + ")\n\n" +
		"func table(path string) map[string]any {\n\tswitch path {\n" + s.cases.String() + "\t}\n\treturn nil\n}\n" +
		s.funcs.String()
}

// add writes the table of a package with its exported names.
func (s *symbolTables) add(p allow.Package, pkg *types.Package) {
	name := s.open(p.Path)
	fmt.Fprintf(&s.imports, "\tpkg_%s %q\n", name, allow.TruePath(p.Path))
	seen := map[string]bool{}
	for _, symbol := range pkg.Scope().Names() {
		if ast.IsExported(symbol) {
			s.symbol(p, "pkg_"+name+"."+symbol, pkg.Scope().Lookup(symbol), seen)
		}
	}
	s.close()
}

// open starts the table of the package with that path.
func (s *symbolTables) open(path string) (name string) {
	name = strings.ReplaceAll(path, "/", "_")
	fmt.Fprintf(&s.cases, "\tcase %q:\n\t\treturn %sTable()\n", path, name)
	fmt.Fprintf(&s.funcs, "\nfunc %sTable() map[string]any {\n\treturn map[string]any{\n", name)
	return name
}

// close ends the current table.
func (s *symbolTables) close() { s.funcs.WriteString("\t}\n}\n") }

// symbol writes the table entry of one exported name. expr is the Go expression for it.
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
		// Hidden types are included: values of them reach programs through visible functions.
		if obj.IsAlias() {
			s.alias(expr, obj)
			return
		}
		if named, ok := obj.Type().(*types.Named); ok && named.TypeParams().Len() > 0 {
			return
		}
		if iface, ok := obj.Type().Underlying().(*types.Interface); ok && !iface.IsMethodSet() {
			return
		}
		fmt.Fprintf(&s.funcs, "\t\t%q: reflect.TypeFor[%s](),\n", obj.Name(), expr)
	}
}

// alias writes the entry of an alias for a type of an allowed package. For a type of any other package it records the
// type in foreign: only the alias is visible, but engines look types up by their own names.
func (s *symbolTables) alias(expr string, obj *types.TypeName) {
	target, ok := types.Unalias(obj.Type()).(*types.Named)
	if !ok || target.Obj().Pkg() == nil || target.TypeArgs().Len() > 0 {
		return
	}
	path := allow.SeenPath(target.Obj().Pkg().Path())
	if _, allowed := allow.Find(path); allowed {
		fmt.Fprintf(&s.funcs, "\t\t%q: reflect.TypeFor[%s](),\n", obj.Name(), expr)
		return
	}
	if s.foreign == nil {
		s.foreign = map[string]map[string]string{}
	}
	if s.foreign[path] == nil {
		s.foreign[path] = map[string]string{}
	}
	s.foreign[path][target.Obj().Name()] = "reflect.TypeFor[" + expr + "]()"
}

// unexportedType returns the name of a variable's type if that is unexported, or "". Programs may call its methods.
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

// elemOf returns the call that yields the type a pointer type points to, or "".
func elemOf(t types.Type) string {
	if _, ok := t.(*types.Pointer); ok {
		return ".Elem()"
	}
	return ""
}

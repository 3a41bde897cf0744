package interp

import (
	"go/types"
	"maps"
	"reflect"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// symbol returns the entry of an allowed package's table, or nil.
func (tt *typeTable) symbol(path, name string) any {
	t, ok := tt.tables[path]
	if !ok {
		t = symbols.Table(path)
		tt.tables[path] = t
	}
	return t[name]
}

// pathOf returns the import path under which a package stands in the symbol tables.
func pathOf(p *types.Package) string { return symbols.PathOf(p.Path()) }

// host returns the run-time type that the binary has for a named type of a host package, or nil.
func (tt *typeTable) host(t *types.Named) reflect.Type {
	obj := t.Obj()
	if obj.Pkg() == nil {
		if obj.Name() == "error" {
			return reflect.TypeFor[error]()
		}
		return nil
	}
	if obj.Parent() != obj.Pkg().Scope() || tt.compiled[obj.Pkg()] {
		return nil
	}
	if t.TypeArgs().Len() > 0 {
		return tt.instance(t)
	}
	if rt, ok := tt.symbol(pathOf(obj.Pkg()), obj.Name()).(reflect.Type); ok {
		return rt
	}
	return tt.unlisted(typeKey{obj.Pkg().Path(), obj.Name()})
}

// A typeKey names a type of the binary.
type typeKey struct{ path, name string }

// unlisted returns a type of a host package that programs reach though they cannot name it, by a field or a method. A twin made by hand
// would be another type to the host.
func (tt *typeTable) unlisted(key typeKey) reflect.Type {
	if tt.hidden == nil {
		tt.hidden = reachable()
	}
	rt := tt.hidden[key]
	if rt == nil {
		fail("no run-time type for " + key.path + "." + key.name)
	}
	return rt
}

// instance returns the binary's instance of a generic host type with methods, such as the unique.Handle in a netip.Addr. Types without methods, such
// as iter.Seq, are made like the program's own.
func (tt *typeTable) instance(t *types.Named) reflect.Type {
	if t.NumMethods() == 0 {
		return nil
	}
	var args []string
	for a := range t.TypeArgs().Types() {
		args = append(args, types.TypeString(a, (*types.Package).Path))
	}
	return tt.unlisted(typeKey{t.Obj().Pkg().Path(), t.Obj().Name() + "[" + strings.Join(args, ",") + "]"})
}

// reachable returns the named types that the symbols of the allowed packages lead to.
func reachable() map[typeKey]reflect.Type {
	found := map[typeKey]reflect.Type{}
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		if seen[t] {
			return
		}
		seen[t] = true
		if t.Name() != "" {
			found[typeKey{t.PkgPath(), t.Name()}] = t
		}
		for m := range t.Methods() {
			visit(m.Type)
		}
		switch t.Kind() {
		case reflect.Map:
			visit(t.Key())
			visit(t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			visit(t.Elem())
		case reflect.Struct:
			for f := range t.Fields() {
				visit(f.Type)
			}
		case reflect.Func:
			for in := range t.Ins() {
				visit(in)
			}
			for out := range t.Outs() {
				visit(out)
			}
		}
	}
	for _, p := range allow.Packages() {
		for v := range maps.Values(symbols.Table(p.Path)) {
			if t, ok := v.(reflect.Type); ok {
				visit(t)
				visit(reflect.PointerTo(t))
			} else {
				visit(reflect.TypeOf(v))
			}
		}
	}
	return found
}

package interp

import (
	"go/types"
	"maps"
	"reflect"

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
	if t.TypeArgs().Len() > 0 || obj.Parent() != obj.Pkg().Scope() {
		return nil
	}
	if tt.compiled[obj.Pkg()] {
		return nil
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

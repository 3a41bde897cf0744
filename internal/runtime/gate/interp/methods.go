package interp

import (
	"go/types"
	"slices"
	"strings"
	"unsafe"
)

func (tt *typeTable) fillInterface(it *interfaceType, t *types.Interface) {
	type entry struct {
		name     string
		exported bool
		fn       *types.Func
	}
	var list []entry
	var pkg *types.Package
	for i := range t.NumMethods() {
		m := t.Method(i)
		list = append(list, entry{m.Name(), m.Exported(), m})
		if pkg == nil && !m.Exported() {
			pkg = m.Pkg()
		}
	}
	it.PkgPath = unsafe.SliceData(pkgName(pkg))
	slices.SortFunc(list, func(a, b entry) int { return methodOrder(a.name, a.exported, b.name, b.exported) })
	methods := make([]imethodEntry, len(list))
	for i, e := range list {
		methods[i].Name = off(encodeName(e.name, "", e.exported, false, 0))
		methods[i].Typ = typeOff(tt.of(noReceiver(e.fn.Type().(*types.Signature))))
	}
	it.Methods = methods
}

// methodOrder is the order of methods in run-time types: exported ones first, then by name.
func methodOrder(a string, aExported bool, b string, bExported bool) int {
	if aExported != bExported {
		if aExported {
			return -1
		}
		return 1
	}
	return strings.Compare(a, b)
}

func noReceiver(s *types.Signature) *types.Signature {
	if s.Recv() == nil {
		return s
	}
	return types.NewSignatureType(nil, nil, nil, s.Params(), s.Results(), s.Variadic())
}

// methodSet returns the methods of t in the order of run-time types; interfaces have none here. Unexported methods of host packages, which
// embedding promotes, are left out: nobody but those packages could call them, and their types may have no name.
func (tt *typeTable) methodSet(t types.Type) []*types.Selection {
	if types.IsInterface(t) {
		return nil
	}
	set := tt.msets.MethodSet(t)
	sels := make([]*types.Selection, 0, set.Len())
	for i := range set.Len() {
		if m := set.At(i).Obj(); m.Name() != "_" && (m.Exported() || tt.compiled[m.Pkg()]) {
			sels = append(sels, set.At(i))
		}
	}
	slices.SortFunc(sels, func(a, b *types.Selection) int {
		return methodOrder(a.Obj().Name(), a.Obj().Exported(), b.Obj().Name(), b.Obj().Exported())
	})
	return sels
}

// addMethods queues the filling of a method table: until then the type has no methods.
func (tt *typeTable) addMethods(t types.Type, f form, sels []*types.Selection) {
	if len(sels) == 0 {
		return
	}
	tt.back[f.t] = t
	tt.bare = append(tt.bare, func() {
		exported := 0
		for i, s := range sels {
			name := s.Obj().Name()
			ft := tt.of(noReceiver(s.Obj().Type().(*types.Signature)))
			code := addReflectOff(tt.code(t, s, ft))
			f.methods[i] = methodEntry{Name: off(encodeName(name, "", s.Obj().Exported(), false, 0)), Mtyp: typeOff(ft), Ifn: code, Tfn: code}
			if s.Obj().Exported() {
				exported++
			}
		}
		f.u.Mcount, f.u.Xcount = uint16(len(sels)), uint16(exported)
	})
}

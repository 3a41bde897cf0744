package interp

import (
	"go/types"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// has reports whether part is the run-time type that the program has for t.
func (o *oracle) has(part reflect.Type, t types.Type) bool {
	own, _ := o.tt.byType.At(t).(reflect.Type)
	return own == part && part != nil
}

func (o *oracle) checkName(t types.Type, rt reflect.Type) {
	named, ok := t.(*types.Named)
	switch {
	case ok:
		path := "tool"
		if p := named.Obj().Pkg(); p != nil {
			path = p.Path()
		}
		o.want(strings.HasPrefix(rt.Name(), named.Obj().Name()) && rt.PkgPath() == path, "is called %q of %q", rt.Name(), rt.PkgPath())
	case rt.Kind() == reflect.Pointer:
		o.want(rt.Name() == "" && rt.String() == "*"+rt.Elem().String(), "is called %q", rt)
	default:
		_, basic := t.(*types.Basic)
		o.want((rt.Name() != "") == basic || rt == reflect.TypeFor[any](), "is called %q", rt.Name())
	}
	if ptr, ok := o.tt.byType.At(types.NewPointer(t)).(reflect.Type); ok {
		o.want(reflect.PointerTo(rt) == ptr, "has two types of pointers")
	}
}

// checkParts looks at what a type is made of.
func (o *oracle) checkParts(under types.Type, rt reflect.Type) {
	switch u := under.(type) {
	case *types.Pointer:
		o.want(o.has(rt.Elem(), u.Elem()), "points to %s", rt.Elem())
	case *types.Slice:
		o.want(o.has(rt.Elem(), u.Elem()), "has elements %s", rt.Elem())
	case *types.Array:
		slice := reflectOf((*arrayType)(unsafe.Pointer(rtypeOf(rt))).Slice)
		o.want(o.has(rt.Elem(), u.Elem()) && int64(rt.Len()) == u.Len(), "has %d elements %s", rt.Len(), rt.Elem())
		o.want(slice == reflect.SliceOf(rt.Elem()), "has slices %s", slice)
	case *types.Chan:
		o.want(o.has(rt.Elem(), u.Elem()) && rt.ChanDir() == chanDirs[u.Dir()], "has elements %s, %s", rt.Elem(), rt.ChanDir())
	case *types.Signature:
		o.want(o.sameSignature(rt, u), "is %s", describe(rt))
	case *types.Struct:
		o.checkFields(u, rt)
	case *types.Map:
		o.checkMap(u, rt)
	}
}

func (o *oracle) sameSignature(rt reflect.Type, s *types.Signature) bool {
	if rt.NumIn() != s.Params().Len() || rt.NumOut() != s.Results().Len() || rt.IsVariadic() != s.Variadic() {
		return false
	}
	for i := range rt.NumIn() {
		if !o.has(rt.In(i), s.Params().At(i).Type()) {
			return false
		}
	}
	for i := range rt.NumOut() {
		if !o.has(rt.Out(i), s.Results().At(i).Type()) {
			return false
		}
	}
	return true
}

// describe writes a function type's own parts, as its text need not be made of them.
func describe(rt reflect.Type) string {
	var parts []string
	for in := range rt.Ins() {
		parts = append(parts, in.String())
	}
	parts = append(parts, "->")
	for out := range rt.Outs() {
		parts = append(parts, out.String())
	}
	return "func " + strings.Join(parts, " ")
}

func (o *oracle) checkFields(u *types.Struct, rt reflect.Type) {
	if !o.want(rt.NumField() == u.NumFields(), "has %d fields instead of %d", rt.NumField(), u.NumFields()) {
		return
	}
	for i, at := range o.offsets(u) {
		f, want := rt.Field(i), u.Field(i)
		path := ""
		if !want.Exported() {
			path = want.Pkg().Path()
		}
		o.want(f.Name == want.Name() && string(f.Tag) == u.Tag(i) && f.Anonymous == want.Embedded() && f.PkgPath == path, "has a field %+v instead of %v", f, want)
		o.want(f.Offset == uintptr(at), "has the field %s at %d instead of %d", f.Name, f.Offset, at)
		o.want(o.has(f.Type, want.Type()), "has a field %s of type %s", f.Name, f.Type)
	}
}

// checkMap compares a map type with the one that reflect makes of the layouts of its key and element.
func (o *oracle) checkMap(u *types.Map, rt reflect.Type) {
	o.want(o.has(rt.Key(), u.Key()) && o.has(rt.Elem(), u.Elem()), "has keys %s and elements %s", rt.Key(), rt.Elem())
	twin := reflect.MapOf(o.tt.layout(u.Key()), o.tt.layout(u.Elem()))
	m, w := (*mapType)(unsafe.Pointer(rtypeOf(rt))), (*mapType)(unsafe.Pointer(rtypeOf(twin)))
	mv, wv := reflect.ValueOf(m).Elem(), reflect.ValueOf(w).Elem()
	for i := range mv.NumField() {
		if f := mv.Field(i); f.CanUint() {
			o.want(f.Uint() == wv.Field(i).Uint(), "has the %s %d instead of %d", mv.Type().Field(i).Name, f.Uint(), wv.Field(i).Uint())
		}
	}
	if o.sameForm(m.Group, w.Group) {
		o.checkHasher(u.Key(), m, w)
	}
}

// typeWord reports whether a word of a t is the first of an interface, of which the compiler says no and reflect yes.
func typeWord(t reflect.Type, at uintptr) bool {
	switch t.Kind() {
	case reflect.Interface:
		return at == 0
	case reflect.Array:
		words := max(t.Elem().Size()/wordSize, 1)
		return typeWord(t.Elem(), at%words)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Offset/wordSize <= at && at*wordSize < f.Offset+f.Type.Size() {
				return typeWord(f.Type, at-f.Offset/wordSize)
			}
		}
	}
	return false
}

// sameForm compares the inside of a map, groups and slots, with that of another: as memory and part by part.
func (o *oracle) sameForm(r, w *rtype) bool {
	rt, wt := reflectOf(r), reflectOf(w)
	const flags = flagMaskOnDemand | flagDirectIface
	if !o.want(r.Size == w.Size && r.PtrBytes == w.PtrBytes && r.Align == w.Align && rt.Kind() == wt.Kind() && r.TFlag&flags == w.TFlag&flags,
		"holds %s in its map where its layout holds %s", rt, wt) {
		return false
	}
	for at := range min(w.PtrBytes/wordSize, 1<<16) {
		if !typeWord(rt, at) && !o.want(hasPointer(r, at) == hasPointer(w, at), "has a pointer in word %d of its map's %s: %t", at, rt, hasPointer(r, at)) {
			return false
		}
	}
	switch rt.Kind() {
	case reflect.Array:
		return o.want(rt.Len() == wt.Len(), "has %d slots instead of %d", rt.Len(), wt.Len()) && o.sameForm(rtypeOf(rt.Elem()), rtypeOf(wt.Elem()))
	case reflect.Struct:
		if !o.want(rt.NumField() == wt.NumField(), "has %d parts of a map instead of %d", rt.NumField(), wt.NumField()) {
			return false
		}
		for i := range rt.NumField() {
			if !o.want(rt.Field(i).Offset == wt.Field(i).Offset, "has part %d of a map at %d instead of %d", i, rt.Field(i).Offset, wt.Field(i).Offset) ||
				!o.sameForm(rtypeOf(rt.Field(i).Type), rtypeOf(wt.Field(i).Type)) {
				return false
			}
		}
	}
	return true
}

// checkMethods looks at a type's method table, or at the methods that an interface type asks for.
func (o *oracle) checkMethods(t types.Type, rt reflect.Type) {
	if u, ok := t.Underlying().(*types.Interface); ok {
		o.checkInterface(u, rt)
		return
	}
	set := types.NewMethodSet(t)
	var want []*types.Func
	exported := 0
	for sel := range set.Methods() {
		if m := sel.Obj().(*types.Func); m.Name() != "_" && o.callable(m) {
			want = append(want, m)
			if m.Exported() {
				exported++
			}
		}
	}
	slices.SortFunc(want, func(a, b *types.Func) int { return methodOrder(a.Name(), a.Exported(), b.Name(), b.Exported()) })
	table := methodTable(rtypeOf(rt))
	if !o.want(len(table) == len(want) && rt.NumMethod() == exported, "has %d methods, %d exported, instead of %d and %d", len(table), rt.NumMethod(), len(want), exported) {
		return
	}
	for i, m := range table {
		sig := noReceiver(want[i].Signature())
		ft, _ := o.tt.byType.At(sig).(reflect.Type)
		ok := o.want(ft != nil && m.Mtyp == typeOff(ft) && m.Ifn != 0 && m.Tfn != 0, "has another method in the place of %s", want[i].Name())
		if ok && i < exported {
			o.want(rt.Method(i).Name == want[i].Name(), "has the method %s in the place of %s", rt.Method(i).Name, want[i].Name())
		}
	}
}

// callable reports whether programs can call a method. The unexported ones of host packages are in no table of theirs.
func (o *oracle) callable(m *types.Func) bool { return m.Exported() || o.tt.compiled[m.Pkg()] }

// methodTable returns the methods of a type as they stand behind it.
func methodTable(r *rtype) []methodEntry {
	if r.TFlag&flagUncommon == 0 {
		return nil
	}
	u := (*uncommonType)(unsafe.Add(unsafe.Pointer(r), kindForm(reflectOf(r).Kind()).Size()))
	if u.Mcount == 0 {
		return nil
	}
	return unsafe.Slice((*methodEntry)(unsafe.Add(unsafe.Pointer(u), u.Moff)), u.Mcount)
}

func (o *oracle) checkInterface(u *types.Interface, rt reflect.Type) {
	if !o.want(rt.NumMethod() == u.NumMethods(), "asks for %d methods instead of %d", rt.NumMethod(), u.NumMethods()) {
		return
	}
	for i := range rt.NumMethod() {
		m := rt.Method(i)
		obj, _, _ := types.LookupFieldOrMethod(u, false, nil, m.Name)
		for f := range u.Methods() {
			if obj == nil && f.Name() == m.Name {
				obj = f
			}
		}
		o.want(obj != nil && o.has(m.Type, noReceiver(obj.Type().(*types.Signature))), "asks for another method %s", m.Name)
	}
}

const maxPairs = 20000

// checkImplements compares which of the types implement which of the interfaces, which takes whole method tables.
func (o *oracle) checkImplements() {
	var ifaces []types.Type
	o.tt.byType.Iterate(func(t types.Type, _ any) {
		if u, ok := t.Underlying().(*types.Interface); ok {
			for m := range u.Methods() {
				ok = ok && o.callable(m)
			}
			if ok {
				ifaces = append(ifaces, t)
			}
		}
	})
	pairs := 0
	for r, t := range o.tt.back {
		o.about = t
		for _, i := range ifaces {
			if pairs++; pairs > maxPairs || len(o.faults) >= maxFaults {
				return
			}
			want := types.Implements(t, i.Underlying().(*types.Interface))
			o.want(reflectOf(r).Implements(o.tt.byType.At(i).(reflect.Type)) == want, "implements %s: %t", i, !want)
		}
	}
}

package interp

import (
	"fmt"
	"go/token"
	"go/types"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// maxTypes bounds the run-time types of a program: a generic type may instantiate itself without end.
const maxTypes = 8192

// A typeTable makes the run-time types of a program. They live as long as the process, as the runtime demands.
type typeTable struct {
	byType  typeutil.Map          // types.Type -> reflect.Type
	layouts typeutil.Map          // types.Type -> reflect.Type of the same memory form
	back    map[*rtype]types.Type // program types with methods, for dynamic calls
	tables  map[string]map[string]any
	kept    []any
	pending []func() // method tables, filled when all types they mention have a header
	depth   int
	count   int
	serial  uint32
	code    func(t types.Type, sel *types.Selection, ft reflect.Type) unsafe.Pointer
	msets   typeutil.MethodSetCache
}

func newTypeTable() *typeTable {
	return &typeTable{back: map[*rtype]types.Type{}, tables: map[string]map[string]any{}}
}

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

// of returns the run-time type of t.
func (tt *typeTable) of(t types.Type) reflect.Type {
	if rt := tt.byType.At(t); rt != nil {
		return rt.(reflect.Type)
	}
	tt.depth++
	if tt.count++; tt.count > maxTypes || tt.depth > 2000 {
		fail("the program has too many types")
	}
	rt := tt.make(types.Unalias(t))
	tt.depth--
	tt.byType.Set(t, rt)
	if tt.depth == 0 {
		tt.finish()
	}
	return rt
}

func (tt *typeTable) finish() {
	for len(tt.pending) > 0 {
		f := tt.pending[0]
		tt.pending = tt.pending[1:]
		tt.depth++ // types made here queue behind
		f()
		tt.depth--
	}
}

func (tt *typeTable) make(t types.Type) reflect.Type {
	switch t := t.(type) {
	case *types.Basic:
		return basicType(t)
	case *types.Named:
		return tt.named(t)
	case *types.Pointer:
		elem := tt.of(t.Elem())
		if rt := tt.byType.At(t); rt != nil { // made together with its element
			return rt.(reflect.Type)
		}
		return reflect.PointerTo(elem)
	case *types.Slice:
		return reflect.SliceOf(tt.of(t.Elem()))
	case *types.Array:
		return reflect.ArrayOf(int(t.Len()), tt.of(t.Elem()))
	case *types.Map:
		return reflect.MapOf(tt.of(t.Key()), tt.of(t.Elem()))
	case *types.Chan:
		dir := map[types.ChanDir]reflect.ChanDir{types.SendRecv: reflect.BothDir, types.SendOnly: reflect.SendDir, types.RecvOnly: reflect.RecvDir}
		return reflect.ChanOf(dir[t.Dir()], tt.of(t.Elem()))
	case *types.Signature:
		return tt.signature(t)
	case *types.Struct:
		return tt.structure(t)
	case *types.Interface:
		if t.NumMethods() == 0 {
			return reflect.TypeFor[any]()
		}
		it, _, _ := newBlock[interfaceType](0)
		tt.setHeader(&it.rtype, tt.layout(t), tt.interfaceName(t))
		it.TFlag &^= flagNamed | flagUncommon
		rt := reflectOf(&it.rtype)
		tt.byType.Set(t, rt)
		tt.fillInterface(it, t)
		return rt
	}
	fail("no run-time type for " + t.String())
	return nil
}

func (tt *typeTable) signature(t *types.Signature) reflect.Type {
	in := make([]reflect.Type, t.Params().Len())
	for i := range in {
		in[i] = tt.of(t.Params().At(i).Type())
	}
	out := make([]reflect.Type, t.Results().Len())
	for i := range out {
		out[i] = tt.of(t.Results().At(i).Type())
	}
	return reflect.FuncOf(in, out, t.Variadic())
}

func basicType(t *types.Basic) reflect.Type {
	if t.Kind() < types.BasicKind(len(basics)) && basics[t.Kind()] != nil {
		return basics[t.Kind()]
	}
	switch t.Kind() {
	case types.UntypedBool:
		return reflect.TypeFor[bool]()
	case types.UntypedInt:
		return reflect.TypeFor[int]()
	case types.UntypedRune:
		return reflect.TypeFor[rune]()
	case types.UntypedFloat:
		return reflect.TypeFor[float64]()
	case types.UntypedComplex:
		return reflect.TypeFor[complex128]()
	case types.UntypedString:
		return reflect.TypeFor[string]()
	case types.UntypedNil:
		return reflect.TypeFor[unsafe.Pointer]()
	case types.Invalid:
		return reflect.TypeFor[struct{}]() // an unused part of a tuple
	}
	fail("no run-time type for " + t.String())
	return nil
}

var basics = [...]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](),
	types.Int16: reflect.TypeFor[int16](), types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](), types.Uintptr: reflect.TypeFor[uintptr](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
	types.Complex64: reflect.TypeFor[complex64](), types.Complex128: reflect.TypeFor[complex128](),
	types.String: reflect.TypeFor[string](), types.UnsafePointer: reflect.TypeFor[unsafe.Pointer](),
}

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
	rt, _ := tt.symbol(pathOf(obj.Pkg()), obj.Name()).(reflect.Type)
	return rt
}

// layout returns a host type with the memory form of t: size, pointers and equality are the same.
func (tt *typeTable) layout(t types.Type) reflect.Type {
	if rt := tt.layouts.At(t); rt != nil {
		return rt.(reflect.Type)
	}
	rt := tt.makeLayout(types.Unalias(t))
	tt.layouts.Set(t, rt)
	return rt
}

func (tt *typeTable) makeLayout(t types.Type) reflect.Type {
	switch t := t.(type) {
	case *types.Basic:
		return basicType(t)
	case *types.Named:
		if rt := tt.host(t); rt != nil {
			return rt
		}
		return tt.layout(t.Underlying())
	case *types.Pointer:
		return reflect.TypeFor[*byte]()
	case *types.Slice:
		return reflect.TypeFor[[]byte]()
	case *types.Map:
		return reflect.TypeFor[map[int]int]()
	case *types.Chan:
		return reflect.TypeFor[chan int]()
	case *types.Signature:
		return reflect.TypeFor[func()]()
	case *types.Interface:
		if t.NumMethods() == 0 {
			return reflect.TypeFor[any]()
		}
		return reflect.TypeFor[error]()
	case *types.Array:
		elem := tt.layout(t.Elem())
		if t.Len() > 0 && elem.Size() > 0 && uint64(t.Len()) > (1<<30)/uint64(elem.Size()) {
			fail("an array type is larger than 1 GiB")
		}
		return reflect.ArrayOf(int(t.Len()), elem)
	case *types.Struct:
		fields := make([]reflect.StructField, t.NumFields())
		for i := range fields {
			fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: tt.layout(t.Field(i).Type())}
		}
		return reflect.StructOf(fields)
	}
	fail("no memory form for " + t.String())
	return nil
}

// setHeader gives a made type the memory form of lay and a name.
func (tt *typeTable) setHeader(t *rtype, lay reflect.Type, name string) {
	src := rtypeOf(lay)
	if src.TFlag&flagMaskOnDemand != 0 {
		reflect.New(lay) // has the runtime build the mask from lay, which is complete; t is not yet
	}
	str := encodeName(name, "", true, false, 0)
	tt.kept = append(tt.kept, str)
	keepType(t)
	tt.serial++
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", name, tt.serial)
	flags := src.TFlag &^ (flagExtraStar | flagUncommon | flagNamed)
	*t = rtype{Size: src.Size, PtrBytes: src.PtrBytes, Hash: h.Sum32(), TFlag: flags, Align: src.Align,
		FieldAlign: src.FieldAlign, Kind: src.Kind, Equal: src.Equal, GCData: src.GCData, Str: tt.off(str)}
}

// keepType keeps t for the life of the process. Objects, method tables and interfaces point to their types where the collector does
// not look, and it may still come upon a dead object when its type is gone.
func keepType(t *rtype) { addReflectOff(unsafe.Pointer(t)) }

// off registers name bytes with the runtime.
func (tt *typeTable) off(b []byte) int32 {
	tt.kept = append(tt.kept, b)
	return addReflectOff(unsafe.Pointer(unsafe.SliceData(b)))
}

func (tt *typeTable) typeOff(t reflect.Type) int32 { return addReflectOff(unsafe.Pointer(rtypeOf(t))) }

func (tt *typeTable) pkgName(p *types.Package) []byte {
	path := "tool"
	if p != nil {
		path = p.Path()
	}
	return encodeName(path, "", false, false, 0)
}

// named makes a named type together with the pointer to it.
func (tt *typeTable) named(t *types.Named) reflect.Type {
	if rt := tt.host(t); rt != nil {
		return rt
	}
	if argDepth(t, 0) > maxArgDepth {
		fail("a generic type instantiates itself without end: too many types")
	}
	under := t.Underlying()
	lay := tt.layout(under)
	sels := tt.methodSet(t)
	hdr, u, methods := newForm(under, len(sels))
	tt.setHeader(hdr, lay, typeName(t))
	hdr.TFlag |= flagNamed | flagUncommon
	u.PkgPath = tt.off(tt.pkgName(t.Obj().Pkg()))
	rt := reflectOf(hdr)
	tt.byType.Set(t, rt)
	tt.back[hdr] = t
	tt.addMethods(t, u, methods, sels)
	tt.pointer(t, rt, "*"+typeName(t))
	tt.fill(hdr, under)
	return rt
}

// maxArgDepth bounds type arguments within type arguments.
const maxArgDepth = 16

func argDepth(t types.Type, depth int) int {
	if depth > maxArgDepth {
		return depth
	}
	deepest := depth
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		for a := range t.TypeArgs().Types() {
			deepest = max(deepest, argDepth(a, depth+1))
		}
	case interface{ Elem() types.Type }:
		deepest = argDepth(t.Elem(), depth)
	}
	return deepest
}

// pointer makes *T for a made type T: the runtime finds T's pointer methods there.
func (tt *typeTable) pointer(elem types.Type, rt reflect.Type, name string) {
	ptr := types.NewPointer(elem)
	sels := tt.methodSet(ptr)
	p, u, methods := newBlock[ptrType](len(sels))
	tt.setHeader(&p.rtype, reflect.TypeFor[*byte](), name)
	p.Elem = rtypeOf(rt)
	if len(sels) > 0 {
		p.TFlag |= flagUncommon
		u.PkgPath = tt.off(tt.pkgName(nil)) // unexported methods are told apart by it
	}
	tt.byType.Set(ptr, reflectOf(&p.rtype))
	tt.back[&p.rtype] = ptr
	rtypeOf(rt).PtrToThis = addReflectOff(unsafe.Pointer(&p.rtype))
	tt.addMethods(ptr, u, methods, sels)
}

// newForm allocates a run-time type of the kind of under.
func newForm(under types.Type, n int) (*rtype, *uncommonType, []methodEntry) {
	switch under.(type) {
	case *types.Basic:
		return newBlock[rtype](n)
	case *types.Pointer:
		t, u, m := newBlock[ptrType](n)
		return &t.rtype, u, m
	case *types.Slice:
		t, u, m := newBlock[sliceType](n)
		return &t.rtype, u, m
	case *types.Array:
		t, u, m := newBlock[arrayType](n)
		return &t.rtype, u, m
	case *types.Map:
		t, u, m := newBlock[mapType](n)
		return &t.rtype, u, m
	case *types.Chan:
		t, u, m := newBlock[chanType](n)
		return &t.rtype, u, m
	case *types.Struct:
		t, u, m := newBlock[structType](n)
		return &t.rtype, u, m
	case *types.Interface:
		t, u, _ := newBlock[interfaceType](0)
		return &t.rtype, u, nil
	case *types.Signature:
		t, _, m := newBlock[funcForm](n)
		t.u.Moff = uint32(uintptr(unsafe.Pointer(unsafe.SliceData(m))) - uintptr(unsafe.Pointer(&t.u)))
		if n == 0 {
			t.u.Moff = uint32(unsafe.Sizeof(t.u))
		}
		return &t.rtype, &t.u, m
	}
	fail("no run-time form for " + under.String())
	return nil, nil, nil
}

// fill completes a made type by what it is made of.
func (tt *typeTable) fill(hdr *rtype, under types.Type) {
	switch under := under.(type) {
	case *types.Pointer:
		(*ptrType)(unsafe.Pointer(hdr)).Elem = rtypeOf(tt.of(under.Elem()))
	case *types.Slice:
		(*sliceType)(unsafe.Pointer(hdr)).Elem = rtypeOf(tt.of(under.Elem()))
	case *types.Array:
		src := (*arrayType)(unsafe.Pointer(rtypeOf(tt.of(under))))
		dst := (*arrayType)(unsafe.Pointer(hdr))
		dst.Elem, dst.Slice, dst.Len = src.Elem, src.Slice, src.Len
	case *types.Chan:
		src := (*chanType)(unsafe.Pointer(rtypeOf(tt.of(under))))
		dst := (*chanType)(unsafe.Pointer(hdr))
		dst.Elem, dst.Dir = src.Elem, src.Dir
	case *types.Map:
		src := (*mapType)(unsafe.Pointer(rtypeOf(tt.of(under))))
		dst := (*mapType)(unsafe.Pointer(hdr))
		head := dst.rtype
		*dst = *src
		dst.rtype = head
	case *types.Signature:
		src := tt.of(under)
		f := (*funcForm)(unsafe.Pointer(hdr))
		s := (*funcType)(unsafe.Pointer(rtypeOf(src)))
		f.InCount, f.OutCount = s.InCount, s.OutCount
		n := src.NumIn()
		if n+src.NumOut() > len(f.args) {
			fail("a function type has too many parameters")
		}
		for i := range n {
			f.args[i] = rtypeOf(src.In(i))
		}
		for i := range src.NumOut() {
			f.args[n+i] = rtypeOf(src.Out(i))
		}
	case *types.Struct:
		tt.fillStruct((*structType)(unsafe.Pointer(hdr)), under)
	case *types.Interface:
		tt.fillInterface((*interfaceType)(unsafe.Pointer(hdr)), under)
	}
}

func (tt *typeTable) fillStruct(st *structType, t *types.Struct) {
	lay := tt.layout(t)
	fields := make([]structField, t.NumFields())
	for i := range fields {
		f := t.Field(i)
		name := encodeName(f.Name(), t.Tag(i), f.Exported(), f.Embedded(), 0)
		tt.kept = append(tt.kept, name)
		if !f.Exported() && st.PkgPath == nil {
			pkg := tt.pkgName(f.Pkg())
			tt.kept = append(tt.kept, pkg)
			st.PkgPath = unsafe.SliceData(pkg)
		}
		fields[i] = structField{Name: unsafe.SliceData(name), Typ: rtypeOf(tt.of(f.Type())), Offset: lay.Field(i).Offset}
	}
	st.Fields = fields
}

// structure makes an unnamed struct type. The runtime can make those without embedded fields itself.
func (tt *typeTable) structure(t *types.Struct) reflect.Type {
	embedded := false
	fields := make([]reflect.StructField, t.NumFields())
	for i := range fields {
		f := t.Field(i)
		embedded = embedded || f.Embedded() || f.Name() == "_"
		fields[i] = reflect.StructField{Name: f.Name(), Type: nil, Tag: reflect.StructTag(t.Tag(i))}
		if !f.Exported() {
			fields[i].PkgPath = f.Pkg().Path()
		}
	}
	if !embedded {
		for i := range fields {
			fields[i].Type = tt.of(t.Field(i).Type())
		}
		return reflect.StructOf(fields)
	}
	sels := tt.methodSet(t)
	hdr, u, methods := newForm(t, len(sels))
	name := tt.structName(t)
	tt.setHeader(hdr, tt.layout(t), name)
	hdr.TFlag |= flagUncommon
	u.PkgPath = tt.off(tt.pkgName(nil))
	rt := reflectOf(hdr)
	tt.byType.Set(t, rt)
	tt.back[hdr] = t
	tt.addMethods(t, u, methods, sels)
	tt.pointer(t, rt, "*"+name)
	tt.fill(hdr, t)
	return rt
}

func (tt *typeTable) fillInterface(it *interfaceType, t *types.Interface) {
	type entry struct {
		name     string
		exported bool
		fn       *types.Func
	}
	var list []entry
	for i := range t.NumMethods() {
		m := t.Method(i)
		list = append(list, entry{m.Name(), m.Exported(), m})
		if it.PkgPath == nil && !m.Exported() {
			pkg := tt.pkgName(m.Pkg())
			tt.kept = append(tt.kept, pkg)
			it.PkgPath = unsafe.SliceData(pkg)
		}
	}
	if it.PkgPath == nil {
		pkg := tt.pkgName(nil)
		tt.kept = append(tt.kept, pkg)
		it.PkgPath = unsafe.SliceData(pkg)
	}
	slices.SortFunc(list, func(a, b entry) int { return methodOrder(a.name, a.exported, b.name, b.exported) })
	it.Methods = make([]imethodEntry, len(list))
	for i, e := range list {
		it.Methods[i].Name = tt.off(encodeName(e.name, "", e.exported, false, 0))
		ft := tt.of(noReceiver(e.fn.Type().(*types.Signature)))
		it.Methods[i].Typ = tt.typeOff(ft)
	}
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

// methodSet returns the methods of t in the order of run-time types; interfaces have none here.
func (tt *typeTable) methodSet(t types.Type) []*types.Selection {
	if types.IsInterface(t) {
		return nil
	}
	set := tt.msets.MethodSet(t)
	sels := make([]*types.Selection, 0, set.Len())
	for i := range set.Len() {
		if set.At(i).Obj().Name() != "_" {
			sels = append(sels, set.At(i))
		}
	}
	slices.SortFunc(sels, func(a, b *types.Selection) int {
		return methodOrder(a.Obj().Name(), a.Obj().Exported(), b.Obj().Name(), b.Obj().Exported())
	})
	return sels
}

// addMethods queues the filling of a method table.
func (tt *typeTable) addMethods(t types.Type, u *uncommonType, methods []methodEntry, sels []*types.Selection) {
	if len(sels) == 0 {
		return
	}
	u.Mcount = uint16(len(sels))
	for _, s := range sels {
		if token.IsExported(s.Obj().Name()) {
			u.Xcount++
		}
	}
	// Headers are enough to make method types, but entries must be there before the runtime looks: queue first.
	tt.pending = append(tt.pending, func() {
		for i, s := range sels {
			name := s.Obj().Name()
			ft := tt.of(noReceiver(s.Obj().Type().(*types.Signature)))
			code := addReflectOff(tt.code(t, s, ft))
			methods[i] = methodEntry{Name: tt.off(encodeName(name, "", s.Obj().Exported(), false, 0)),
				Mtyp: tt.typeOff(ft), Ifn: code, Tfn: code}
		}
	})
}

package interp

import (
	"fmt"
	"go/types"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/types/typeutil"
)

// maxTypes bounds the run-time types of a program: a generic type may instantiate itself without end.
const maxTypes = 8192

// maxParams bounds the parameters and results of a function type: with a receiver reflect makes no more than 128.
const maxParams = 127

// A typeTable makes the run-time types of a program: reflect makes what it can, form and this file what it refuses, which is names,
// methods, embedded and blank fields, and interfaces with methods. The types live as long as the process, as the runtime demands.
//
// A type that refers to itself must be seen by reflect before its own parts can be made. So that nobody ever sees half a type, each is
// born as a copy of its layout, a whole type of the same memory form; of returns when it and all that it leads to have
// got their own parts and methods.
type typeTable struct {
	byType   typeutil.Map          // types.Type -> reflect.Type
	layouts  typeutil.Map          // types.Type -> reflect.Type of the same memory form
	back     map[*rtype]types.Type // program types with methods, for dynamic calls
	tables   map[string]map[string]any
	compiled map[*types.Package]bool  // packages whose types are made: the program, and what is compiled with it
	hidden   map[typeKey]reflect.Type // types of the binary that no table names; nil until one is looked for
	naming   typeutil.Map             // types without a name whose text is being written
	born     []func()                 // give types their own parts
	bare     []func()                 // fill method tables
	depth    int
	count    int
	serial   uint32
	broken   string // why no more types can be made: some may have been left without their parts
	code     func(t types.Type, sel *types.Selection, ft reflect.Type) unsafe.Pointer
	msets    typeutil.MethodSetCache
}

func newTypeTable(compiled map[*types.Package]bool) *typeTable {
	return &typeTable{compiled: compiled, back: map[*rtype]types.Type{}, tables: map[string]map[string]any{}}
}

// of returns the run-time type of t, which is finished, and so is all that it leads to.
func (tt *typeTable) of(t types.Type) reflect.Type {
	if rt := tt.byType.At(t); rt != nil {
		return rt.(reflect.Type)
	}
	if tt.broken != "" {
		fail(tt.broken)
	}
	if tt.depth > 0 {
		return tt.enter(t)
	}
	done := false
	defer func() {
		if !done {
			tt.broken = "the program's types could not be made"
		}
	}()
	tt.depth++ // types made from here on are finished below
	rt := tt.enter(t)
	for len(tt.born)+len(tt.bare) > 0 {
		queue := &tt.born
		if len(tt.born) == 0 {
			queue = &tt.bare // method types need parts only, but methods may need types whose parts are missing
		}
		next := (*queue)[0]
		*queue = (*queue)[1:]
		next()
	}
	tt.depth--
	done = true
	return rt
}

func (tt *typeTable) enter(t types.Type) reflect.Type {
	tt.depth++
	if tt.count++; tt.count > maxTypes || tt.depth > 2000 {
		refuse("the program has too many types")
	}
	rt := tt.make(types.Unalias(t))
	tt.depth--
	tt.byType.Set(t, rt)
	return rt
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
		if tt.layout(t.Elem()).Size() >= 1<<16 {
			refuse("the elements of a channel are larger than 64 KiB") // to the Go toolchain, too
		}
		return reflect.ChanOf(chanDirs[t.Dir()], tt.of(t.Elem()))
	case *types.Signature:
		return tt.signature(t)
	case *types.Struct:
		return tt.structure(t)
	case *types.Interface:
		if t.NumMethods() == 0 {
			return reflect.TypeFor[any]()
		}
		return tt.declare(t, tt.unnamed(t, tt.interfaceName), 0)
	}
	fail("no run-time type for " + t.String())
	return nil
}

var chanDirs = [...]reflect.ChanDir{types.SendRecv: reflect.BothDir, types.SendOnly: reflect.SendDir, types.RecvOnly: reflect.RecvDir}

func (tt *typeTable) signature(t *types.Signature) reflect.Type {
	in := make([]reflect.Type, t.Params().Len())
	for i := range in {
		in[i] = tt.of(t.Params().At(i).Type())
	}
	out := make([]reflect.Type, t.Results().Len())
	for i := range out {
		out[i] = tt.of(t.Results().At(i).Type())
	}
	if len(in)+len(out) > maxParams {
		refuse("a function type has more than 127 parameters and results")
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

// off registers name bytes with the runtime, which keeps them.
func off(b []byte) int32 { return addReflectOff(unsafe.Pointer(unsafe.SliceData(b))) }

func typeOff(t reflect.Type) int32 { return addReflectOff(unsafe.Pointer(rtypeOf(t))) }

func pkgName(p *types.Package) []byte {
	path := "tool"
	if p != nil {
		path = p.Path()
	}
	return encodeName(path, "", false, false, 0)
}

// named makes a named type.
func (tt *typeTable) named(t *types.Named) reflect.Type {
	if rt := tt.host(t); rt != nil {
		return rt
	}
	if argDepth(t, 0) > maxArgDepth {
		refuse("a generic type instantiates itself without end: too many types")
	}
	return tt.declare(t, typeName(t), flagNamed)
}

// declare makes a type that reflect cannot make, as a copy of its layout under its own name, together with the pointer to it. Its own parts
// and methods come when all that they mention has been declared.
func (tt *typeTable) declare(t types.Type, name string, flags uint8) reflect.Type {
	if rt := tt.byType.At(t); rt != nil { // while its name was written
		return rt.(reflect.Type)
	}
	under := t.Underlying()
	args := 0
	if sig, ok := under.(*types.Signature); ok {
		args = sig.Params().Len() + sig.Results().Len()
	}
	sels := tt.methodSet(t)
	f := newForm(tt.layout(under), args, len(sels))
	tt.identify(f, name)
	f.t.TFlag |= flags
	if named, ok := t.(*types.Named); ok {
		f.t.TFlag |= flagUncommon
		f.u.PkgPath = off(pkgName(named.Obj().Pkg()))
	} else if len(sels) > 0 {
		f.t.TFlag |= flagUncommon
		f.u.PkgPath = off(pkgName(nil))
	}
	rt := reflectOf(f.t)
	tt.byType.Set(t, rt)
	tt.addMethods(t, f, sels)
	tt.pointer(t, f.t, "*"+name)
	tt.born = append(tt.born, func() { tt.complete(f, under) })
	return rt
}

// identify gives a made type its name and what tells it from others of the same name.
func (tt *typeTable) identify(f form, name string) {
	tt.serial++
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", name, tt.serial)
	f.t.Hash = h.Sum32()
	f.t.TFlag &^= flagExtraStar
	f.t.Str = off(encodeName(name, "", true, false, 0))
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

// pointer makes *T for a made type T with pointer methods: the runtime finds them there. Other pointers are made by reflect.
func (tt *typeTable) pointer(elem types.Type, to *rtype, name string) {
	ptr := types.NewPointer(elem)
	sels := tt.methodSet(ptr)
	if len(sels) == 0 {
		return
	}
	f := newForm(reflect.TypeFor[*byte](), 0, len(sels))
	tt.identify(f, name)
	(*ptrType)(unsafe.Pointer(f.t)).Elem = to
	f.t.TFlag |= flagUncommon
	f.u.PkgPath = off(pkgName(nil)) // unexported methods are told apart by it
	to.PtrToThis = addReflectOff(unsafe.Pointer(f.t))
	tt.byType.Set(ptr, reflectOf(f.t))
	tt.addMethods(ptr, f, sels)
}

// complete gives a made type its own parts in place of those of its layout.
func (tt *typeTable) complete(f form, under types.Type) {
	switch under := under.(type) {
	case *types.Basic:
	case *types.Struct:
		f.takeParts(tt.plainStruct(under))
		embed((*structType)(unsafe.Pointer(f.t)), under)
	case *types.Interface:
		tt.fillInterface((*interfaceType)(unsafe.Pointer(f.t)), under)
	default:
		f.takeParts(tt.of(under))
	}
}

// plainStruct returns the struct type that reflect makes of the fields of t, embedded ones as plain ones.
func (tt *typeTable) plainStruct(t *types.Struct) reflect.Type {
	fields := make([]reflect.StructField, t.NumFields())
	for i := range fields {
		f := t.Field(i)
		fields[i] = reflect.StructField{Name: f.Name(), Type: tt.of(f.Type()), Tag: reflect.StructTag(t.Tag(i))}
		if !f.Exported() {
			fields[i].PkgPath = f.Pkg().Path()
		}
	}
	return reflect.StructOf(fields)
}

// embed marks the fields of a made type that are embedded.
func embed(st *structType, t *types.Struct) {
	st.Fields = slices.Clone(st.Fields)
	for i := range st.Fields {
		if f := t.Field(i); f.Embedded() {
			st.Fields[i].Name = unsafe.SliceData(encodeName(f.Name(), t.Tag(i), f.Exported(), true, 0))
		}
	}
}

// structure makes an unnamed struct type. Those without embedded and blank fields reflect makes whole.
func (tt *typeTable) structure(t *types.Struct) reflect.Type {
	for f := range t.Fields() {
		if f.Embedded() || f.Name() == "_" {
			return tt.declare(t, tt.unnamed(t, tt.structName), 0)
		}
	}
	return tt.plainStruct(t)
}

// unnamed returns the text that stands for a type without a name. One that contains itself, through methods, has none.
func (tt *typeTable) unnamed(t types.Type, write func(types.Type) string) string {
	if tt.naming.At(t) != nil {
		refuse("a type without a name contains itself: declare it with a name")
	}
	tt.naming.Set(t, true)
	defer tt.naming.Delete(t)
	return write(t)
}

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

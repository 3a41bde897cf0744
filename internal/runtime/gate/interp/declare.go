package interp

import (
	"fmt"
	"go/types"
	"hash/fnv"
	"reflect"
	"slices"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
)

// named makes a named type.
func (tt *typeTable) named(t *types.Named) reflect.Type {
	if rt := tt.host(t); rt != nil {
		return rt
	}
	if gate.TooNested(t) {
		refuse("a generic type instantiates itself without end: too many types")
	}
	return tt.declare(t, tt.typeName(t), flagNamed)
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

// identify gives a made type its name and what distinguishes it from others of the same name.
func (tt *typeTable) identify(f form, name string) {
	tt.serial++
	h := fnv.New32a()
	fmt.Fprintf(h, "%s#%d", name, tt.serial)
	f.t.Hash = h.Sum32()
	f.t.TFlag &^= flagExtraStar
	f.t.Str = off(encodeName(name, "", true, false, 0))
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
	f.u.PkgPath = off(pkgName(nil)) // it distinguishes unexported methods
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

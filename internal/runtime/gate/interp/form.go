package interp

import (
	"reflect"
	"unsafe"
)

// A form is the memory of a made type: what its kind holds, the uncommon part, the parameters and results of a function type, and the
// method table, one behind the other as the runtime expects them.
type form struct {
	t       *rtype
	u       *uncommonType
	args    []*rtype
	methods []methodEntry
}

// kindForm returns the structure that the runtime has for types of a kind.
func kindForm(k reflect.Kind) reflect.Type {
	switch k {
	case reflect.Pointer:
		return reflect.TypeFor[ptrType]()
	case reflect.Slice:
		return reflect.TypeFor[sliceType]()
	case reflect.Array:
		return reflect.TypeFor[arrayType]()
	case reflect.Chan:
		return reflect.TypeFor[chanType]()
	case reflect.Map:
		return reflect.TypeFor[mapType]()
	case reflect.Func:
		return reflect.TypeFor[funcType]()
	case reflect.Struct:
		return reflect.TypeFor[structType]()
	case reflect.Interface:
		return reflect.TypeFor[interfaceType]()
	}
	return reflect.TypeFor[rtype]()
}

// newForm allocates a type that is whole from the start: a copy of src, with room for args and methods. A function type comes without
// parameters and results. The type lives as long as the process: objects, method tables and interfaces point to it where the
// collector does not look, and it may still come upon a dead object when nothing else holds the type.
func newForm(src reflect.Type, args, methods int) form {
	kind := kindForm(src.Kind())
	block := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "T", Type: kind},
		{Name: "U", Type: reflect.TypeFor[uncommonType]()},
		{Name: "A", Type: reflect.ArrayOf(args, reflect.TypeFor[*rtype]())},
		{Name: "M", Type: reflect.ArrayOf(methods, reflect.TypeFor[methodEntry]())},
		{Name: "End", Type: reflect.TypeFor[uintptr]()}, // a table without entries starts within the block, too
	})).Elem()
	block.Field(0).Set(reflect.NewAt(kind, unsafe.Pointer(rtypeOf(src))).Elem())
	f := form{
		t:       (*rtype)(block.Addr().UnsafePointer()),
		u:       block.Field(1).Addr().Interface().(*uncommonType),
		args:    block.Field(2).Slice(0, args).Interface().([]*rtype),
		methods: block.Field(3).Slice(0, methods).Interface().([]methodEntry),
	}
	f.u.Moff = uint32(block.Field(3).UnsafeAddr() - block.Field(1).UnsafeAddr())
	f.t.TFlag &^= flagUncommon | flagNamed
	f.t.PtrToThis = 0
	if src.Kind() == reflect.Func {
		ft := (*funcType)(unsafe.Pointer(f.t))
		ft.InCount, ft.OutCount = 0, 0
	}
	addReflectOff(unsafe.Pointer(f.t))
	return f
}

// takeParts gives a made type the parts of src, which has the same memory form, and leaves it its head.
func (f form) takeParts(src reflect.Type) {
	head := *f.t
	kind := kindForm(src.Kind())
	reflect.NewAt(kind, unsafe.Pointer(f.t)).Elem().Set(reflect.NewAt(kind, unsafe.Pointer(rtypeOf(src))).Elem())
	*f.t = head
	if src.Kind() != reflect.Func {
		return
	}
	n := src.NumIn()
	for i := range f.args {
		if i < n {
			f.args[i] = rtypeOf(src.In(i))
		} else {
			f.args[i] = rtypeOf(src.Out(i - n))
		}
	}
}

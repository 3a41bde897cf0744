package interp

import (
	"go/types"
	"reflect"
	"slices"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// dynamicType returns the type of the value in an interface at p, nil for a nil interface.
func dynamicType(p unsafe.Pointer, empty bool) *rtype {
	e := (*eface)(p)
	if e.typ == nil {
		return nil
	}
	if empty {
		return (*rtype)(e.typ)
	}
	return (*itabHeader)(e.typ).Type
}

// loadAny returns the interface at p as an any.
func loadAny(p unsafe.Pointer, empty bool) any {
	if empty {
		return *(*any)(p)
	}
	var out any
	ifaceToEface(unsafe.Pointer(&out), p)
	return out
}

// ifaceToEface stores the interface with methods at src as an any at dst.
func ifaceToEface(dst, src unsafe.Pointer) {
	e := *(*eface)(src)
	if e.typ != nil {
		e.typ = unsafe.Pointer((*itabHeader)(e.typ).Type)
	}
	*(*any)(dst) = *(*any)(unsafe.Pointer(&e))
}

// storeIface stores an interface value made of its two words.
func storeIface(dst, typ, data unsafe.Pointer) {
	e := eface{typ, data}
	*(*any)(dst) = *(*any)(unsafe.Pointer(&e))
}

type implKey struct {
	iface, typ *rtype
}

// itab returns the method table of a type for an interface type with methods; nil when it does not implement it.
func (mc *machine) itab(iface, typ *rtype) unsafe.Pointer {
	key := implKey{iface, typ}
	if t, ok := mc.impls[key]; ok {
		return t
	}
	var tab unsafe.Pointer
	it, ct := reflectOf(iface), reflectOf(typ)
	if ct.Implements(it) {
		v := reflect.New(it)
		v.Elem().Set(reflect.Zero(ct))
		tab = (*eface)(v.UnsafePointer()).typ
	}
	mc.impls[key] = tab
	return tab
}

func (c *compiler) makeInterface(in *ssa.MakeInterface) op {
	d, x := c.off(in), c.off(in.X)
	typ := c.real(in.X.Type())
	word := unsafe.Pointer(typ)
	if !isEmptyInterface(in.Type()) {
		word = c.mc.itab(c.real(in.Type()), typ)
		if word == nil {
			fail(in.X.Type().String() + " does not implement " + in.Type().String())
		}
	}
	if typ.direct() {
		return func(m unsafe.Pointer) { storeIface(unsafe.Add(m, d), word, *at[unsafe.Pointer](m, x)) }
	}
	if classOf(typ) == classString {
		return func(m unsafe.Pointer) {
			p := new(string)
			*p = *at[string](m, x)
			storeIface(unsafe.Add(m, d), word, unsafe.Pointer(p))
		}
	}
	return func(m unsafe.Pointer) {
		p := unsafeNew(typ)
		copyTo(typ, p, unsafe.Add(m, x))
		storeIface(unsafe.Add(m, d), word, p)
	}
}

func (c *compiler) changeInterface(in *ssa.ChangeInterface) op {
	d, x := c.off(in), c.off(in.X)
	from := isEmptyInterface(in.X.Type())
	if isEmptyInterface(in.Type()) {
		if from {
			return move[any](d, x)
		}
		return func(m unsafe.Pointer) { ifaceToEface(unsafe.Add(m, d), unsafe.Add(m, x)) }
	}
	it, mc := c.real(in.Type()), c.mc
	return func(m unsafe.Pointer) {
		t := dynamicType(unsafe.Add(m, x), from)
		if t == nil {
			storeIface(unsafe.Add(m, d), nil, nil)
			return
		}
		storeIface(unsafe.Add(m, d), mc.itab(it, t), at[eface](m, x).data)
	}
}

func (c *compiler) typeAssert(in *ssa.TypeAssert) op {
	x := c.off(in.X)
	empty := isEmptyInterface(in.X.Type())
	want, static := c.real(in.AssertedType), c.real(in.X.Type())
	d, ok := c.resultAndOK(in, in.CommaOk)
	commaOk, mc := in.CommaOk, c.mc
	if !commaOk && boundMethod(in) {
		return func(m unsafe.Pointer) { nilCheck(at[eface](m, x).typ) }
	}
	if types.IsInterface(in.AssertedType) {
		static = nil // not shown
	}
	failed := func(m unsafe.Pointer, have *rtype, missing string) {
		if !commaOk {
			e := &typeAssertionError{static, have, want, missing}
			panic((*runtimeTypeAssertionError)(unsafe.Pointer(e)))
		}
		typedmemclr(want, unsafe.Add(m, d))
		*at[bool](m, ok) = false
	}
	if types.IsInterface(in.AssertedType) {
		toEmpty := isEmptyInterface(in.AssertedType)
		return func(m unsafe.Pointer) {
			have := dynamicType(unsafe.Add(m, x), empty)
			if have == nil {
				failed(m, nil, "")
				return
			}
			word := unsafe.Pointer(have)
			if !toEmpty {
				if word = mc.itab(want, have); word == nil {
					failed(m, have, missingMethod(want, have))
					return
				}
			}
			storeIface(unsafe.Add(m, d), word, at[eface](m, x).data)
			if commaOk {
				*at[bool](m, ok) = true
			}
		}
	}
	return func(m unsafe.Pointer) {
		have := dynamicType(unsafe.Add(m, x), empty)
		if have != want {
			failed(m, have, "")
			return
		}
		data := at[eface](m, x).data
		if want.direct() {
			*at[unsafe.Pointer](m, d) = data
		} else {
			copyTo(want, unsafe.Add(m, d), data)
		}
		if commaOk {
			*at[bool](m, ok) = true
		}
	}
}

// boundMethod reports whether in is only the nil check of a method value: go/ssa asserts the interface to the type that declares the method, or to any
// where the type is a type parameter, and binds the method next.
func boundMethod(in *ssa.TypeAssert) bool {
	if len(*in.Referrers()) > 0 || !types.IsInterface(in.AssertedType) {
		return false
	}
	rest := in.Block().Instrs
	rest = rest[slices.Index(rest, ssa.Instruction(in))+1:]
	if _, ok := rest[0].(*ssa.ChangeInterface); ok {
		rest = rest[1:]
	}
	closure, ok := rest[0].(*ssa.MakeClosure)
	return ok && len(closure.Bindings) == 1 && unchanged(closure.Bindings[0]) == unchanged(in.X)
}

// unchanged returns the interface value that v was before conversions to other interface types.
func unchanged(v ssa.Value) ssa.Value {
	for {
		c, ok := v.(*ssa.ChangeInterface)
		if !ok {
			return v
		}
		v = c.X
	}
}

// sameMethod reports whether a method, which has its receiver in front, has the signature want.
func sameMethod(have, want reflect.Type) bool {
	if have.NumIn()-1 != want.NumIn() || have.NumOut() != want.NumOut() {
		return false
	}
	for i := range want.NumIn() {
		if have.In(i+1) != want.In(i) {
			return false
		}
	}
	for i := range want.NumOut() {
		if have.Out(i) != want.Out(i) {
			return false
		}
	}
	return have.IsVariadic() == want.IsVariadic()
}

// missingMethod names the first method of the interface type that the type lacks.
func missingMethod(iface, typ *rtype) string {
	it, ct := reflectOf(iface), reflectOf(typ)
	for i := range it.NumMethod() {
		m := it.Method(i)
		if have, ok := ct.MethodByName(m.Name); !ok || !sameMethod(have.Type, m.Type) {
			return m.Name
		}
	}
	if it.NumMethod() > 0 {
		return it.Method(0).Name
	}
	return ""
}

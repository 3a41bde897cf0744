package interp

import (
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

type dynKey struct {
	typ  *rtype
	name string
}

// A target is the method that a dynamic call reaches.
type target struct {
	f      *fn            // of the program
	recv   *rtype         // its receiver
	direct bool           // the interface's word is the receiver
	value  pointedTo      // where the receiver is a pointer to the value that the method is declared for
	host   int            // else the method's index in the host's type
	code   unsafe.Pointer // and a function value that takes the interface's word; nil when there is none
}

// A pointedTo is a method that is declared for values, as callers with a pointer to a value need it.
type pointedTo struct {
	f    *fn // nil when there is none
	recv *rtype
}

// pointedTo returns the method that t, if it is a pointer, has from the type that it points to. go/ssa's own form of it makes one call more; it
// is for nil pointers, about which it panics.
func (mc *machine) pointedTo(t types.Type, pkg *types.Package, name string) (p pointedTo) {
	pointer, ok := t.(*types.Pointer)
	if !ok {
		return p
	}
	sel := mc.prog.MethodSets.MethodSet(pointer.Elem()).Lookup(pkg, name)
	if sel == nil || len(sel.Index()) > 1 || types.IsInterface(pointer.Elem()) {
		return p
	}
	if f := mc.prog.MethodValue(sel); f != nil && f.Blocks != nil {
		p = pointedTo{mc.fnOf(f), rtypeOf(mc.types.layout(pointer.Elem()))}
	}
	return p
}

// invoke compiles a call of an interface's method.
func (c *compiler) invoke(cc *ssa.CallCommon, v ssa.Value) op {
	x := c.off(cc.Value)
	empty := isEmptyInterface(cc.Value.Type())
	args, results := c.args(cc.Args), c.resultSlots(v, cc.Signature())
	mc, name := c.mc, cc.Method.Name()
	pkg := cc.Method.Pkg()
	recvWord, callHost := c.hostInvoker(cc, args, results)
	var last *rtype
	var lastTarget *target
	return func(m unsafe.Pointer) {
		t := dynamicType(unsafe.Add(m, x), empty)
		if t == nil {
			nilPanic()
		}
		if t != last {
			lastTarget, last = mc.target(t, pkg, name), t
		}
		to := lastTarget
		data := at[eface](m, x).data
		if to.f == nil {
			if to.code != nil && callHost != nil {
				*(*unsafe.Pointer)(unsafe.Add(m, recvWord)) = data
				callHost(m, to.code)
				return
			}
			recv := reflect.NewAt(reflectOf(t), dataPointer(t, &data)).Elem()
			mc.guarded(reflectCall(recv.Method(to.host), args, results), true)(m)
			return
		}
		f := to.f
		if data != nil && to.value.f != nil {
			f = to.value.f
		}
		if !f.ready {
			f.prepare()
		}
		nm := f.newFrame()
		if f == to.value.f {
			copyTo(to.value.recv, unsafe.Add(nm, f.params[0].off), data)
		} else if to.direct {
			*at[unsafe.Pointer](nm, f.params[0].off) = data
		} else {
			copyTo(to.recv, unsafe.Add(nm, f.params[0].off), data)
		}
		for i := range args {
			a := &args[i]
			copyTo(a.rt, unsafe.Add(nm, f.params[i+1].off), unsafe.Add(m, a.off))
		}
		mc.enter(f, nm)
		f.fetch(results, m, nm)
	}
}

// hostInvoker returns what calls a method of a host type, by a function value that takes the word of the interface, and where in the frame
// it takes that word from.
func (c *compiler) hostInvoker(cc *ssa.CallCommon, args, results []argument) (uintptr, func(m, fn unsafe.Pointer)) {
	if !cc.Method.Exported() {
		return 0, nil
	}
	ft := c.mc.types.of(noReceiver(cc.Signature()))
	pointer := reflect.TypeFor[unsafe.Pointer]()
	recv := c.alloc(rtypeOf(pointer))
	var p passing
	p.add(pointer, recv)
	p.addAll(ft, args)
	return recv, c.dynamicCaller(p, ft, results)
}

// wordMethod returns the function value of a method of the host's type t that takes the word of an interface, or nil.
func wordMethod(t *rtype, name string) unsafe.Pointer {
	recv := reflectOf(t)
	if !t.direct() {
		recv = reflect.PointerTo(recv)
	}
	m, ok := recv.MethodByName(name)
	if !ok { // reflect makes pointer types without methods
		return nil
	}
	return funcPointer(m.Func)
}

// dataPointer returns a pointer to the value whose interface word is *data.
func dataPointer(t *rtype, data *unsafe.Pointer) unsafe.Pointer {
	if t.direct() {
		return unsafe.Pointer(data)
	}
	return *data
}

func (mc *machine) target(t *rtype, pkg *types.Package, name string) *target {
	key := dynKey{t, name}
	if to, ok := mc.dyn[key]; ok {
		return to
	}
	to := &target{direct: t.direct()}
	if own := mc.types.back[t]; own != nil {
		sel := mc.prog.MethodSets.MethodSet(own).Lookup(pkg, name)
		if sel == nil {
			fail("no method " + name + " of " + own.String())
		}
		f := mc.prog.MethodValue(sel)
		to.f, to.recv, to.value = mc.fnOf(f), rtypeOf(mc.types.layout(own)), mc.pointedTo(own, pkg, name)
		if f.Blocks == nil {
			to.f = nil
		}
	}
	if to.f == nil {
		m, ok := reflectOf(t).MethodByName(name)
		if !ok {
			fail("no method " + name + " of " + reflectOf(t).String())
		}
		to.host = m.Index
		if mc.types.back[t] == nil {
			to.code = wordMethod(t, name)
		}
	}
	mc.dyn[key] = to
	return to
}

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
	f      *fn    // of the program
	recv   *rtype // its receiver
	direct bool   // the interface's word is the receiver
	host   int    // else the method's index in the host's type
}

// invoke compiles a call of an interface's method.
func (c *compiler) invoke(cc *ssa.CallCommon, v ssa.Value) op {
	x := c.off(cc.Value)
	empty := isEmptyInterface(cc.Value.Type())
	args, results := c.args(cc.Args), c.resultSlots(v, cc.Signature())
	mc, name := c.mc, cc.Method.Name()
	pkg := cc.Method.Pkg()
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
			recv := reflect.NewAt(reflectOf(t), dataPointer(t, &data)).Elem()
			mc.forgetOrders()
			mc.hostCall(recv.Method(to.host), m, args, results)
			return
		}
		f := to.f
		if !f.ready {
			f.prepare()
		}
		nm := f.newFrame()
		if to.direct {
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
		to.f, to.recv = mc.fnOf(f), rtypeOf(mc.types.layout(own))
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
	}
	mc.dyn[key] = to
	return to
}

package interp

import (
	"go/types"
	"reflect"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// fnOf returns the compiled form of a function that has a body.
func (mc *machine) fnOf(f *ssa.Function) *fn {
	if c, ok := mc.funcs[f]; ok {
		return c
	}
	c := &fn{mc: mc, ssa: f, own: f.Pos().IsValid() && mc.isOwn(f)}
	for _, kind := range []string{"wrapper for ", "thunk for ", "bound method wrapper for "} {
		c.wrapper = c.wrapper || strings.HasPrefix(f.Synthetic, kind)
	}
	mc.funcs[f] = c
	mc.order = append(mc.order, c)
	return c
}

func (mc *machine) isOwn(f *ssa.Function) bool {
	for f.Parent() != nil {
		f = f.Parent()
	}
	if o := f.Origin(); o != nil {
		f = o
	}
	return f.Pkg == mc.main
}

// funcValue returns the function value for a declared function.
func (mc *machine) funcValue(f *ssa.Function) unsafe.Pointer {
	if p, ok := mc.values[f]; ok {
		return p
	}
	var p unsafe.Pointer
	if f.Blocks == nil {
		p = funcPointer(mc.hostFunc(f))
	} else {
		p = newClosure(mc.head(mc.types.of(noReceiver(f.Signature))), mc.fromHostCode, mc.fnOf(f), nil)
	}
	mc.values[f] = p
	return p
}

// funcPointer returns the function value in v as a pointer.
func funcPointer(v reflect.Value) unsafe.Pointer {
	i := v.Interface()
	return (*eface)(unsafe.Pointer(&i)).data
}

func (c *compiler) makeClosure(in *ssa.MakeClosure) op {
	d := c.off(in)
	f := in.Fn.(*ssa.Function)
	callee := c.mc.fnOf(f)
	head := c.mc.head(c.mc.types.of(noReceiver(f.Signature)))
	code := c.mc.fromHostCode
	type capture struct {
		off  uintptr
		rt   *rtype
		word bool
	}
	caps := make([]capture, len(in.Bindings))
	for i, b := range in.Bindings {
		rt := c.layout(b.Type())
		caps[i] = capture{c.off(b), rt, rt.Size == wordSize && rt.PtrBytes == wordSize}
	}
	return func(m unsafe.Pointer) {
		free := make([]unsafe.Pointer, len(caps))
		for i, k := range caps {
			if k.word {
				free[i] = *at[unsafe.Pointer](m, k.off)
				continue
			}
			free[i] = unsafeNew(k.rt)
			copyTo(k.rt, free[i], unsafe.Add(m, k.off))
		}
		*at[unsafe.Pointer](m, d) = newClosure(head, code, callee, free)
	}
}

// An argument is where an argument stands in the caller's frame.
type argument struct {
	off uintptr
	rt  *rtype
}

func (c *compiler) args(list []ssa.Value) []argument {
	out := make([]argument, len(list))
	for i, a := range list {
		out[i] = argument{c.off(a), c.layout(a.Type())}
	}
	return out
}

// results returns where the results of a call go.
func (c *compiler) resultSlots(v ssa.Value, sig *types.Signature) []argument {
	n := sig.Results().Len()
	out := make([]argument, n)
	if v == nil { // a deferred call: results are dropped
		for i := range out {
			rt := c.layout(sig.Results().At(i).Type())
			out[i] = argument{c.alloc(rt), rt}
		}
		return out
	}
	if n == 1 {
		return []argument{{c.off(v), c.layout(v.Type())}}
	}
	if n > 1 {
		for i, off := range c.tuple(v) {
			out[i] = argument{off, c.layout(sig.Results().At(i).Type())}
		}
	}
	return out
}

// call compiles a call; v is its value, nil when it is deferred.
func (c *compiler) call(cc *ssa.CallCommon, v ssa.Value) op {
	if cc.IsInvoke() {
		return c.invoke(cc, v)
	}
	switch callee := cc.Value.(type) {
	case *ssa.Builtin:
		return c.builtin(callee, cc, v)
	case *ssa.Function:
		if callee.Blocks != nil {
			return c.callStatic(c.mc.fnOf(callee), c.args(cc.Args), c.resultSlots(v, cc.Signature()))
		}
		return c.callHost(callee, c.args(cc.Args), c.resultSlots(v, cc.Signature()))
	}
	return c.callValue(cc, v)
}

func (c *compiler) callStatic(f *fn, args, results []argument) op {
	mc := c.mc
	return func(m unsafe.Pointer) {
		f.prepare()
		nm := f.newFrame()
		for i := range args {
			a := &args[i]
			copyTo(a.rt, unsafe.Add(nm, f.params[i].off), unsafe.Add(m, a.off))
		}
		mc.enter(f, nm, m, results)
	}
}

// enter runs a callee's frame and fetches the results.
func (mc *machine) enter(f *fn, nm, m unsafe.Pointer, results []argument) {
	if mc.deferring != nil {
		h := headOf(nm)
		h.deferOf, mc.deferring = mc.deferring, nil
		f.run(nm)
		h.deferOf = nil
	} else {
		f.run(nm)
	}
	for i := range results {
		r := &results[i]
		copyTo(r.rt, unsafe.Add(m, r.off), unsafe.Add(nm, f.results[i].off))
	}
	f.release(nm)
}

// callValue calls a function value: a closure of ours directly, anything else through the host.
func (c *compiler) callValue(cc *ssa.CallCommon, v ssa.Value) op {
	x := c.off(cc.Value)
	args, results := c.args(cc.Args), c.resultSlots(v, cc.Signature())
	mc := c.mc
	ft := mc.types.of(noReceiver(cc.Signature()))
	return func(m unsafe.Pointer) {
		p := *at[unsafe.Pointer](m, x)
		if p == nil {
			nilPanic()
		}
		if !mc.isClosure(p) {
			fv := reflect.NewAt(ft, unsafe.Pointer(&p)).Elem()
			mc.forgetOrders()
			mc.hostCall(fv, m, args, results)
			return
		}
		cl := (*closure)(p)
		f := cl.f
		f.prepare()
		nm := f.newFrame()
		if len(cl.free) > 0 {
			cl.setFree(nm)
		}
		for i := range args {
			a := &args[i]
			copyTo(a.rt, unsafe.Add(nm, f.params[i].off), unsafe.Add(m, a.off))
		}
		mc.enter(f, nm, m, results)
	}
}

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
		f.prepare()
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
		mc.enter(f, nm, m, results)
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

// deferInstr compiles a deferred call: its operands as they are now are kept for it.
func (c *compiler) deferInstr(in *ssa.Defer) op {
	call, capture := c.later(&in.Call)
	mc := c.mc
	var stack uintptr
	if in.DeferStack != nil {
		stack = c.off(in.DeferStack)
	}
	check := c.nilDefer(&in.Call)
	return func(m unsafe.Pointer) {
		check(m)
		snap := capture(m)
		head := headOf(m)
		if stack != 0 {
			head = *at[*frameHead](m, stack)
		}
		head.defers = &deferred{tail: head.defers, run: func(of *frameHead) {
			mc.deferring = of
			call(snap)
			mc.deferring = nil
		}}
	}
}

// later compiles a call for a frame of its own, which holds no more than the call's operands, and what captures them there.
func (c *compiler) later(cc *ssa.CallCommon) (call op, capture func(m unsafe.Pointer) unsafe.Pointer) {
	own := newCompiler(&fn{mc: c.mc, ssa: c.f.ssa})
	var moves []func(snap, m unsafe.Pointer)
	for _, v := range append([]ssa.Value{cc.Value}, cc.Args...) {
		switch v.(type) {
		case *ssa.Builtin, *ssa.Const, *ssa.Function, *ssa.Global:
			continue // in the frame from the start
		}
		if _, known := own.offs[v]; known {
			continue
		}
		from, to := c.off(v), own.slotFor(v, v.Type())
		moves = append(moves, func(snap, m unsafe.Pointer) { copyTo(to.rt, unsafe.Add(snap, to.off), unsafe.Add(m, from)) })
	}
	if call = own.call(cc, nil); call == nil {
		call = func(unsafe.Pointer) {}
	}
	own.finish()
	return call, func(m unsafe.Pointer) unsafe.Pointer {
		snap := unsafeNew(own.f.frame)
		typedmemmove(own.f.frame, snap, own.f.template)
		*at[*frameHead](snap, 0) = headOf(m)
		for _, move := range moves {
			move(snap, m)
		}
		return snap
	}
}

// nilDefer panics where Go does: a method of a nil interface at the defer statement, a nil function only when it is run.
func (c *compiler) nilDefer(cc *ssa.CallCommon) func(unsafe.Pointer) {
	if !cc.IsInvoke() {
		return func(unsafe.Pointer) {}
	}
	x := c.off(cc.Value)
	return func(m unsafe.Pointer) { nilCheck(at[eface](m, x).typ) }
}

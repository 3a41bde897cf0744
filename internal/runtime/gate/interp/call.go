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
				free[i] = *(*unsafe.Pointer)(unsafe.Add(m, k.off))
				continue
			}
			free[i] = unsafeNew(k.rt)
			copyTo(k.rt, free[i], unsafe.Add(m, k.off))
		}
		*(*unsafe.Pointer)(unsafe.Add(m, d)) = newClosure(head, code, callee, free)
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
		if o := c.genericNative(callee, cc, v); o != nil {
			return o
		}
		if callee.Blocks != nil {
			return c.callStatic(c.mc.fnOf(callee), c.args(cc.Args), c.resultSlots(v, cc.Signature()), v != nil && !c.f.wrapper)
		}
		return c.callHost(callee, c.args(cc.Args), c.resultSlots(v, cc.Signature()))
	}
	return c.callValue(cc, v)
}

// A transfer copies a value between the frames of a caller and of the function that it calls.
type transfer struct {
	class    class
	rt       *rtype
	dst, src uintptr
}

// transfers returns the copies of arguments to parameters, and of results to where the caller wants them.
func transfers(f *fn, params []slot, args, results []argument) (in, out []transfer) {
	for i, a := range args {
		in = append(in, transfer{classOf(a.rt), a.rt, params[i].off, a.off})
	}
	for i, r := range results {
		out = append(out, transfer{classOf(r.rt), r.rt, r.off, f.results[i].off})
	}
	return in, out
}

func moveAll(list []transfer, dst, src unsafe.Pointer) {
	for i := range list {
		list[i].move(dst, src)
	}
}

func (t *transfer) move(dst, src unsafe.Pointer) {
	d, s := unsafe.Add(dst, t.dst), unsafe.Add(src, t.src)
	switch t.class {
	case classPointer:
		*(*unsafe.Pointer)(d) = *(*unsafe.Pointer)(s)
	case classSlice:
		*(*[]byte)(d) = *(*[]byte)(s)
	case classString:
		*(*string)(d) = *(*string)(s)
	default:
		copyTo(t.rt, d, s)
	}
}

// enter runs a callee's frame.
func (mc *machine) enter(f *fn, nm unsafe.Pointer) {
	if mc.deferring == nil {
		f.run(nm)
		return
	}
	h := headOf(nm)
	h.deferOf, mc.deferring = mc.deferring, nil
	f.run(nm)
	h.deferOf = nil
}

// fetch copies the results of a callee's frame to where the caller wants them.
func (f *fn) fetch(results []argument, m, nm unsafe.Pointer) {
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
	callHost := c.valueCaller(ft, args, results)
	code := mc.head(ft).code
	return func(m unsafe.Pointer) {
		p := *(*unsafe.Pointer)(unsafe.Add(m, x))
		if p == nil {
			nilPanic()
		}
		if !mc.isClosure(p, code) {
			callHost(m, p)
			return
		}
		cl := (*closure)(p)
		f := cl.f
		if !f.ready {
			f.prepare()
		}
		nm := f.newFrame()
		if len(cl.free) > 0 {
			cl.setFree(nm)
		}
		for i := range args {
			a := &args[i]
			copyTo(a.rt, unsafe.Add(nm, f.params[i].off), unsafe.Add(m, a.off))
		}
		mc.enter(f, nm)
		f.fetch(results, m, nm)
	}
}

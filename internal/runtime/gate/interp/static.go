package interp

import (
	"go/token"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// callStatic compiles a call of a function of the program. It is plain when no deferred call is about to be made by it.
func (c *compiler) callStatic(f *fn, args, results []argument, plain bool) op {
	mc := c.mc
	f.declare()
	in, out := transfers(f, f.params, args, results)
	if plain && !f.defers {
		return mc.callPlain(f, in, out)
	}
	return func(m unsafe.Pointer) {
		nm := f.newFrame()
		moveAll(in, nm, m)
		mc.enter(f, nm)
		moveAll(out, m, nm)
		f.release(nm)
	}
}

// plainCall returns the plain form of a call of a function of the program; nil for other calls.
func (c *compiler) plainCall(in *ssa.Call) op {
	callee, ok := in.Call.Value.(*ssa.Function)
	if !ok || callee.Blocks == nil {
		return nil
	}
	return c.callStatic(c.mc.fnOf(callee), c.args(in.Call.Args), c.resultSlots(in, in.Call.Signature()), true)
}

// callPlain calls a function that defers nothing. It does what newFrame, run and release do, in one place.
func (mc *machine) callPlain(f *fn, in, out []transfer) op {
	return func(m unsafe.Pointer) {
		var nm unsafe.Pointer
		if n := len(f.pool); n > 0 {
			nm = f.pool[n-1]
			f.pool = f.pool[:n-1]
		} else {
			nm = f.makeFrame()
		}
		for i := range in {
			t := &in[i]
			if t.class == class8 {
				*(*uint64)(unsafe.Add(nm, t.dst)) = *(*uint64)(unsafe.Add(m, t.src))
			} else {
				t.move(nm, m)
			}
		}
		if mc.depth++; mc.depth > maxDepth {
			mc.abort(fatal("stack overflow"))
		}
		pos := mc.pos
		for b := f.entry; b != nil; {
			if b.pos != token.NoPos {
				mc.pos = b.pos
			}
			b = b.run(nm)
		}
		mc.pos = pos
		mc.depth--
		for i := range out {
			t := &out[i]
			if t.class == class8 {
				*(*uint64)(unsafe.Add(m, t.dst)) = *(*uint64)(unsafe.Add(nm, t.src))
			} else {
				t.move(m, nm)
			}
		}
		f.release(nm)
	}
}

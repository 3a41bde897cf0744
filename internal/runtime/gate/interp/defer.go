package interp

import (
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

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

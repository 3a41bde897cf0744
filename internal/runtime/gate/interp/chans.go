package interp

import (
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// A program has one goroutine: what would block blocks for ever.
const deadlock = fatal("all goroutines are asleep - deadlock!")

func (c *compiler) makeChan(in *ssa.MakeChan) op {
	d := c.off(in)
	rt := reflectOf(c.real(in.Type()))
	elem := rt.Elem()
	n := c.readInt(in.Size.Type(), c.off(in.Size))
	return func(m unsafe.Pointer) {
		k := n(m)
		if k < 0 || k > 1<<40/int64(max(elem.Size(), 1)) {
			panic(errMakeChan())
		}
		ch := reflect.MakeChan(reflect.ChanOf(reflect.BothDir, elem), int(k))
		*at[unsafe.Pointer](m, d) = ch.UnsafePointer()
	}
}

func (c *compiler) send(in *ssa.Send) op {
	rt, et := c.bothWays(in.Chan.Type())
	ch, x := c.off(in.Chan), c.off(in.X)
	mc := c.mc
	return func(m unsafe.Pointer) {
		cv := reflect.NewAt(rt, unsafe.Add(m, ch)).Elem()
		if cv.IsNil() || !cv.TrySend(reflect.NewAt(et, unsafe.Add(m, x)).Elem()) {
			mc.abort(deadlock)
		}
	}
}

// bothWays returns the channel type without a direction, by which the host may do everything with it.
func (c *compiler) bothWays(t types.Type) (ch, elem reflect.Type) {
	elem = reflectOf(c.real(t.Underlying().(*types.Chan).Elem()))
	return reflect.ChanOf(reflect.BothDir, elem), elem
}

func (c *compiler) receive(in *ssa.UnOp) op {
	rt, et := c.bothWays(in.X.Type())
	ch := c.off(in.X)
	d, ok := c.resultAndOK(in, in.CommaOk)
	commaOk, mc := in.CommaOk, c.mc
	return func(m unsafe.Pointer) {
		v, got, ready := tryReceive(reflect.NewAt(rt, unsafe.Add(m, ch)).Elem())
		if !ready {
			mc.abort(deadlock)
		}
		reflect.NewAt(et, unsafe.Add(m, d)).Elem().Set(v)
		if commaOk {
			*at[bool](m, ok) = got
		}
	}
}

// tryReceive receives without blocking: ready is false when it would block, got is false when the channel is closed.
func tryReceive(ch reflect.Value) (v reflect.Value, got, ready bool) {
	if ch.IsNil() {
		return v, false, false
	}
	v, got = ch.TryRecv()
	return v, got, v.IsValid()
}

// selectInstr compiles a select: the first case that is ready is taken, so that a run can be repeated.
func (c *compiler) selectInstr(in *ssa.Select) op {
	parts := c.tuple(in)
	type state struct {
		ch, val  uintptr
		rt, elem reflect.Type
		send     bool
		out      uintptr
	}
	var states []state
	next := 2
	for _, s := range in.States {
		st := state{ch: c.off(s.Chan), send: s.Dir == types.SendOnly}
		st.rt, st.elem = c.bothWays(s.Chan.Type())
		if st.send {
			st.val = c.off(s.Send)
		} else {
			st.out = parts[next]
			next++
		}
		states = append(states, st)
	}
	blocking, mc := in.Blocking, c.mc
	return func(m unsafe.Pointer) {
		*at[bool](m, parts[1]) = false
		for i, s := range states {
			ch := reflect.NewAt(s.rt, unsafe.Add(m, s.ch)).Elem()
			if s.send {
				if ch.IsNil() || !ch.TrySend(reflect.NewAt(s.elem, unsafe.Add(m, s.val)).Elem()) {
					continue
				}
			} else {
				v, got, ready := tryReceive(ch)
				if !ready {
					continue
				}
				reflect.NewAt(s.elem, unsafe.Add(m, s.out)).Elem().Set(v)
				*at[bool](m, parts[1]) = got
			}
			*at[int](m, parts[0]) = i
			return
		}
		if blocking {
			mc.abort(deadlock)
		}
		*at[int](m, parts[0]) = -1
	}
}

package interp

import (
	"reflect"
	"unsafe"
)

// A reach is what a host function may get at through its arguments, but through those of another goroutine there is nothing.
type reach uint8

const (
	reachesCode reach = 1 << iota // functions of the program: as function values, or as methods behind interfaces
	reachesMaps
)

// reachOf returns what functions of type ft may reach.
func (mc *machine) reachOf(ft reflect.Type) (all reach) {
	for in := range ft.Ins() {
		r, ok := mc.reached[in]
		if !ok {
			r = reachOfType(in, map[reflect.Type]bool{})
			mc.reached[in] = r
		}
		all |= r
	}
	return all
}

func reachOfType(t reflect.Type, seen map[reflect.Type]bool) (r reach) {
	if seen[t] {
		return 0
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface, reflect.Func, reflect.UnsafePointer, reflect.Chan:
		return reachesCode | reachesMaps
	case reflect.Map:
		return reachesMaps | reachOfType(t.Key(), seen) | reachOfType(t.Elem(), seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return reachOfType(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			r |= reachOfType(t.Field(i).Type, seen)
		}
	}
	return r
}

// guarded returns a host call that may run functions of the program, and, if it may, change its maps.
func (mc *machine) guarded(call op, changesMaps bool) op {
	return func(m unsafe.Pointer) {
		if changesMaps {
			mc.forgetOrders()
		}
		mc.deferring = nil
		depth, panicking, pos := mc.depth, mc.panicking, mc.pos
		mc.callOut(call, m)
		if mc.aborted != nil {
			mc.abort(mc.aborted)
		}
		mc.depth, mc.panicking, mc.pos = depth, panicking, pos // the host may have swallowed a panic
	}
}

// callOut makes a host call. If the run is aborted inside it, callOut recovers the panic and returns, and its caller panics anew on the
// shorter stack. encoding/json recovers and panics again at every level, each time on top of the stack of the panic before: without this, the time
// would be quadratic in the depth.
func (mc *machine) callOut(call op, m unsafe.Pointer) {
	defer func() {
		if mc.aborted != nil {
			_ = recover()
		}
	}()
	call(m)
}

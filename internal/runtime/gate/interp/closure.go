package interp

import (
	"reflect"
	"unsafe"
)

// A closure is a function value of the program. Interpreted code recognises it (isClosure) and calls f directly; the
// host calls it as any function value.
type closure struct {
	closureHead
	call struct { // the method value c.fromHost, in place
		code uintptr
		recv *closure
	}
	f    *fn
	free []unsafe.Pointer // one a free variable: a pointer-shaped value itself, else where it is
}

// head returns the host's part of closures of that type.
func (mc *machine) head(ft reflect.Type) closureHead {
	if h, ok := mc.closures[ft]; ok {
		return h
	}
	v := reflect.MakeFunc(ft, func([]reflect.Value) []reflect.Value { return nil })
	h := *(*closureHead)((*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1])
	mc.closures[ft] = h
	return h
}

// newClosure returns the function value for f with its free variables.
func newClosure(head closureHead, fromHost uintptr, f *fn, free []unsafe.Pointer) unsafe.Pointer {
	c := &closure{closureHead: head, f: f, free: free}
	c.call.code, c.call.recv = fromHost, c
	c.fn = unsafe.Pointer(&c.call)
	return unsafe.Pointer(c)
}

// fromHostCode returns the code address of the method value (*closure).fromHost.
func fromHostCode() uintptr {
	f := (&closure{}).fromHost
	return **(**uintptr)(unsafe.Pointer(&f))
}

// makeFuncCode returns the code address that all functions made by reflect.MakeFunc share.
func makeFuncCode() uintptr {
	v := reflect.MakeFunc(reflect.TypeFor[func()](), func([]reflect.Value) []reflect.Value { return nil })
	return (*closureHead)((*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1]).code
}

// isClosure reports whether a function value is a closure of ours. Its code is not enough: the host makes functions by reflect.MakeFunc
// too. No more of it is looked at than is there: other function values are smaller.
func (mc *machine) isClosure(p unsafe.Pointer) bool {
	return *(*uintptr)(p) == mc.makeFuncCode && *(*uintptr)((*closureHead)(p).fn) == mc.fromHostCode
}

func (c *closure) fromHost(args []reflect.Value) []reflect.Value {
	f := c.f
	m := c.begin(args)
	f.runForHost(m)
	ft := reflectOf((*rtype)(c.ftyp))
	out := make([]reflect.Type, len(f.results))
	for i := range out {
		out[i] = ft.Out(i)
	}
	values := f.hostResults(m, out)
	f.release(m)
	return values
}

// begin returns a frame of the function with its free variables and arguments in place.
func (c *closure) begin(args []reflect.Value) unsafe.Pointer {
	f := c.f
	defer f.mc.containOwn()
	f.prepare()
	m := f.newFrame()
	c.setFree(m)
	for i, a := range args {
		p := f.params[i]
		reflect.NewAt(a.Type(), unsafe.Add(m, p.off)).Elem().Set(a)
	}
	return m
}

// setFree puts the free variables into a frame.
func (c *closure) setFree(m unsafe.Pointer) {
	for i, p := range c.free {
		s := c.f.free[i]
		if s.rt.Size == wordSize && s.rt.PtrBytes == wordSize {
			*(*unsafe.Pointer)(unsafe.Add(m, s.off)) = p
		} else {
			typedmemmove(s.rt, unsafe.Add(m, s.off), p)
		}
	}
}

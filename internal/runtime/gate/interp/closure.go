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
	if code := hostCode(ft); code != 0 {
		h.code = code
	}
	mc.closures[ft] = h
	return h
}

// newClosure returns the function value for f with its free variables.
func newClosure(head closureHead, fromHost uintptr, f *fn, free []unsafe.Pointer) unsafe.Pointer {
	c := &closure{closureHead: head, f: f, free: free}
	if head.code != f.mc.makeFuncCode { // one of hostCode: the closure is its second word
		c.stack = unsafe.Pointer(c)
	}
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

// isClosure reports whether a function value is a closure of ours; those of its type have this code. That may not be enough: the host makes functions
// by reflect.MakeFunc too. No more of it is looked at than is there: other function values are smaller.
func (mc *machine) isClosure(p unsafe.Pointer, code uintptr) bool {
	return *(*uintptr)(p) == code && (code != mc.makeFuncCode || *(*uintptr)((*closureHead)(p).fn) == mc.fromHostCode)
}

func (c *closure) fromHost(args []reflect.Value) []reflect.Value {
	f, m := c.begin()
	for i, a := range args {
		reflect.NewAt(a.Type(), unsafe.Add(m, f.params[i].off)).Elem().Set(a)
	}
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

// begin returns the closure's function, and a frame of it with the free variables in place.
func (c *closure) begin() (*fn, unsafe.Pointer) {
	f := c.f
	if !f.ready {
		f.prepareForHost()
	}
	m := f.newFrame()
	c.setFree(m)
	return f, m
}

// prepareForHost compiles a function that the host calls for the first time.
func (f *fn) prepareForHost() {
	defer f.mc.containOwn()
	f.prepare()
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

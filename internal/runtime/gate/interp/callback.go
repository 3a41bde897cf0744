package interp

import (
	"reflect"
	"unsafe"
)

// The host calls a closure of the program by its code. For the function types that the allowed packages call often the code is one of the methods here,
// as the method value of the closure; for all others it is reflect's, which calls fromHost.

// hostCode returns the code by which the host calls closures of type ft without reflection, 0 if there is none. It takes a function value whose
// second word is the closure.
func hostCode(ft reflect.Type) uintptr {
	var c *closure
	var v any
	switch reflect.Zero(ft).Interface().(type) {
	case func():
		v = c.call0
	case func() bool:
		v = c.callBool
	case func(int) bool:
		v = c.callIntBool
	case func(int) int:
		v = c.callIntInt
	case func(int, int) bool:
		v = c.callIntIntBool
	case func(rune) bool:
		v = c.callRuneBool
	case func(rune) rune:
		v = c.callRuneRune
	case func(string) bool:
		v = c.callStringBool
	case func(string) string:
		v = c.callStringString
	case func([]byte) bool:
		v = c.callBytesBool
	case func([]byte) []byte:
		v = c.callBytesBytes
	case func(int, string) bool:
		v = c.callIntStringBool
	default:
		return 0
	}
	return *(*uintptr)(funcPointer(reflect.ValueOf(v)))
}

func (c *closure) call0() {
	f, m := c.begin()
	f.runForHost(m)
	f.release(m)
}

func (c *closure) callBool() bool {
	f, m := c.begin()
	return answer[bool](f, m)
}

func (c *closure) callIntBool(a int) bool           { return call1[int, bool](c, a) }
func (c *closure) callIntInt(a int) int             { return call1[int, int](c, a) }
func (c *closure) callIntIntBool(a, b int) bool     { return call2[int, int, bool](c, a, b) }
func (c *closure) callRuneBool(a rune) bool         { return call1[rune, bool](c, a) }
func (c *closure) callRuneRune(a rune) rune         { return call1[rune, rune](c, a) }
func (c *closure) callStringBool(a string) bool     { return call1[string, bool](c, a) }
func (c *closure) callStringString(a string) string { return call1[string, string](c, a) }
func (c *closure) callBytesBool(a []byte) bool      { return call1[[]byte, bool](c, a) }
func (c *closure) callBytesBytes(a []byte) []byte   { return call1[[]byte, []byte](c, a) }

func (c *closure) callIntStringBool(a int, b string) bool { return call2[int, string, bool](c, a, b) }

func call1[A, R any](c *closure, a A) R {
	f, m := c.begin()
	*(*A)(unsafe.Add(m, f.params[0].off)) = a
	return answer[R](f, m)
}

func call2[A, B, R any](c *closure, a A, b B) R {
	f, m := c.begin()
	*(*A)(unsafe.Add(m, f.params[0].off)) = a
	*(*B)(unsafe.Add(m, f.params[1].off)) = b
	return answer[R](f, m)
}

// answer runs a frame on behalf of the host and returns its result.
func answer[R any](f *fn, m unsafe.Pointer) R {
	f.runForHost(m)
	r := *(*R)(unsafe.Add(m, f.results[0].off))
	f.release(m)
	return r
}

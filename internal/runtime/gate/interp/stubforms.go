package interp

import (
	"fmt"
	"reflect"
	"unsafe"
)

// form returns the function value for a method of one of the most common signatures, without the cost of reflection; nil for others.
func (m *method) form(ft reflect.Type) any {
	switch reflect.Zero(ft).Interface().(type) {
	case func() string:
		return form0[string](m)
	case func() error:
		return form0[error](m)
	case func() int:
		return form0[int](m)
	case func() bool:
		return form0[bool](m)
	case func() any:
		return form0[any](m)
	case func() []error:
		return form0[[]error](m)
	case func() float64:
		return form0[float64](m)
	case func() ([]byte, error):
		return form0x2[[]byte, error](m)
	case func() (byte, error):
		return form0x2[byte, error](m)
	case func(any):
		return form1x0[any](m)
	case func(error) bool:
		return form1[error, bool](m)
	case func(any) bool:
		return form1[any, bool](m)
	case func([]byte) error:
		return form1[[]byte, error](m)
	case func(string) error:
		return form1[string, error](m)
	case func(byte) error:
		return form1[byte, error](m)
	case func([]byte) (int, error):
		return form1x2[[]byte, int, error](m)
	case func(string) (int, error):
		return form1x2[string, int, error](m)
	case func(int, int) bool:
		return form2[int, int, bool](m)
	case func(int, int):
		return form2x0[int, int](m)
	case func(fmt.State, rune):
		return form2x0[fmt.State, rune](m)
	}
	return nil
}

func form0[R any](m *method) any {
	return func(recv unsafe.Pointer) R {
		f, mem := m.begin(recv)
		f.runForHost(mem)
		r := *(*R)(unsafe.Add(mem, f.results[0].off))
		f.release(mem)
		return r
	}
}

func form0x2[R, S any](m *method) any {
	return func(recv unsafe.Pointer) (R, S) {
		f, mem := m.begin(recv)
		f.runForHost(mem)
		r, s := *(*R)(unsafe.Add(mem, f.results[0].off)), *(*S)(unsafe.Add(mem, f.results[1].off))
		f.release(mem)
		return r, s
	}
}

func form1[A, R any](m *method) any {
	return func(recv unsafe.Pointer, a A) R {
		f, mem := m.begin(recv)
		*(*A)(unsafe.Add(mem, f.params[1].off)) = a
		f.runForHost(mem)
		r := *(*R)(unsafe.Add(mem, f.results[0].off))
		f.release(mem)
		return r
	}
}

func form1x0[A any](m *method) any {
	return func(recv unsafe.Pointer, a A) {
		f, mem := m.begin(recv)
		*(*A)(unsafe.Add(mem, f.params[1].off)) = a
		f.runForHost(mem)
		f.release(mem)
	}
}

func form1x2[A, R, S any](m *method) any {
	return func(recv unsafe.Pointer, a A) (R, S) {
		f, mem := m.begin(recv)
		*(*A)(unsafe.Add(mem, f.params[1].off)) = a
		f.runForHost(mem)
		r, s := *(*R)(unsafe.Add(mem, f.results[0].off)), *(*S)(unsafe.Add(mem, f.results[1].off))
		f.release(mem)
		return r, s
	}
}

func form2[A, B, R any](m *method) any {
	return func(recv unsafe.Pointer, a A, b B) R {
		f, mem := m.begin(recv)
		*(*A)(unsafe.Add(mem, f.params[1].off)), *(*B)(unsafe.Add(mem, f.params[2].off)) = a, b
		f.runForHost(mem)
		r := *(*R)(unsafe.Add(mem, f.results[0].off))
		f.release(mem)
		return r
	}
}

func form2x0[A, B any](m *method) any {
	return func(recv unsafe.Pointer, a A, b B) {
		f, mem := m.begin(recv)
		*(*A)(unsafe.Add(mem, f.params[1].off)), *(*B)(unsafe.Add(mem, f.params[2].off)) = a, b
		f.runForHost(mem)
		f.release(mem)
	}
}

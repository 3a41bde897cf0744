package interp

import (
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// convert compiles a conversion that changes the form of a value.
func (c *compiler) convert(to, from types.Type, d, x uintptr) op {
	tl, fl := c.mc.types.layout(to), c.mc.types.layout(from)
	tk, fk := tl.Kind(), fl.Kind()
	switch {
	case isNumeric(tk) && isNumeric(fk):
		return numericConversion(tk, fk, d, x)
	case tk == reflect.String && isInteger(fk):
		read := c.readInt(from, x)
		unsigned := isUnsigned(from)
		return func(m unsafe.Pointer) {
			n := read(m)
			if n < 0 || n > 0x10ffff || unsigned && uint64(n) > 0x10ffff {
				n = 0xfffd
			}
			*(*string)(unsafe.Add(m, d)) = string(rune(n))
		}
	case tk == reflect.String && fk == reflect.Slice:
		if c.elemKind(from) == reflect.Int32 {
			return func(m unsafe.Pointer) { *(*string)(unsafe.Add(m, d)) = string(*(*[]rune)(unsafe.Add(m, x))) }
		}
		return func(m unsafe.Pointer) { *(*string)(unsafe.Add(m, d)) = string(*(*[]byte)(unsafe.Add(m, x))) }
	case tk == reflect.Slice && fk == reflect.String:
		if c.elemKind(to) == reflect.Int32 {
			return func(m unsafe.Pointer) { *(*[]rune)(unsafe.Add(m, d)) = []rune(*(*string)(unsafe.Add(m, x))) }
		}
		return func(m unsafe.Pointer) { *(*[]byte)(unsafe.Add(m, d)) = []byte(*(*string)(unsafe.Add(m, x))) }
	case tk == reflect.Array && fk == reflect.Slice:
		rt := rtypeOf(tl)
		n := tl.Len()
		return func(m unsafe.Pointer) {
			s := at[sliceHeader](m, x)
			checkArrayLen(s.len, n)
			if rt.Size > 0 {
				typedmemmove(rt, unsafe.Add(m, d), s.data)
			}
		}
	case tl.Size() == fl.Size():
		return moveOp(rtypeOf(tl), d, x)
	}
	fail("no conversion from " + from.String() + " to " + to.String())
	return nil
}

func (c *compiler) elemKind(t types.Type) reflect.Kind {
	return c.mc.types.layout(t.Underlying().(*types.Slice).Elem()).Kind()
}

// checkArrayLen panics as a conversion of a slice to an array does.
func checkArrayLen(have, want int) {
	if have < want {
		panic(boundsLike(errConvert(), uint64(want), have))
	}
}

func (c *compiler) sliceToArrayPointer(in *ssa.SliceToArrayPointer) op {
	d, x := c.off(in), c.off(in.X)
	n := int(in.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Array).Len())
	return func(m unsafe.Pointer) {
		s := at[sliceHeader](m, x)
		checkArrayLen(s.len, n)
		*(*unsafe.Pointer)(unsafe.Add(m, d)) = s.data
	}
}

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uintptr }

func isNumeric(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Complex128 }

func numericConversion(to, from reflect.Kind, d, x uintptr) op {
	switch from {
	case reflect.Int:
		return realTo[int](to, d, x)
	case reflect.Int8:
		return realTo[int8](to, d, x)
	case reflect.Int16:
		return realTo[int16](to, d, x)
	case reflect.Int32:
		return realTo[int32](to, d, x)
	case reflect.Int64:
		return realTo[int64](to, d, x)
	case reflect.Uint:
		return realTo[uint](to, d, x)
	case reflect.Uint8:
		return realTo[uint8](to, d, x)
	case reflect.Uint16:
		return realTo[uint16](to, d, x)
	case reflect.Uint32:
		return realTo[uint32](to, d, x)
	case reflect.Uint64:
		return realTo[uint64](to, d, x)
	case reflect.Uintptr:
		return realTo[uintptr](to, d, x)
	case reflect.Float32:
		return realTo[float32](to, d, x)
	case reflect.Float64:
		return realTo[float64](to, d, x)
	case reflect.Complex64:
		if to == reflect.Complex64 {
			return move[complex64](d, x)
		}
		return func(m unsafe.Pointer) { *(*complex128)(unsafe.Add(m, d)) = complex128(*(*complex64)(unsafe.Add(m, x))) }
	case reflect.Complex128:
		if to == reflect.Complex128 {
			return move[complex128](d, x)
		}
		return func(m unsafe.Pointer) { *(*complex64)(unsafe.Add(m, d)) = complex64(*(*complex128)(unsafe.Add(m, x))) }
	}
	fail("no numeric conversion")
	return nil
}

func realTo[F integer | floating](to reflect.Kind, d, x uintptr) op {
	switch to {
	case reflect.Int:
		return realConversion[F, int](d, x)
	case reflect.Int8:
		return realConversion[F, int8](d, x)
	case reflect.Int16:
		return realConversion[F, int16](d, x)
	case reflect.Int32:
		return realConversion[F, int32](d, x)
	case reflect.Int64:
		return realConversion[F, int64](d, x)
	case reflect.Uint:
		return realConversion[F, uint](d, x)
	case reflect.Uint8:
		return realConversion[F, uint8](d, x)
	case reflect.Uint16:
		return realConversion[F, uint16](d, x)
	case reflect.Uint32:
		return realConversion[F, uint32](d, x)
	case reflect.Uint64:
		return realConversion[F, uint64](d, x)
	case reflect.Uintptr:
		return realConversion[F, uintptr](d, x)
	case reflect.Float32:
		return realConversion[F, float32](d, x)
	case reflect.Float64:
		return realConversion[F, float64](d, x)
	}
	fail("no numeric conversion")
	return nil
}

func realConversion[F, T integer | floating](d, x uintptr) op {
	return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = T(*(*F)(unsafe.Add(m, x))) }
}

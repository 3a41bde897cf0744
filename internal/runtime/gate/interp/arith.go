package interp

import (
	"cmp"
	"go/token"
	"go/types"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

type integer interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr
}

type floating interface{ float32 | float64 }

type number interface {
	integer | floating | complex64 | complex128
}

func at[T any](m unsafe.Pointer, off uintptr) *T { return (*T)(unsafe.Add(m, off)) }

func (c *compiler) binop(in *ssa.BinOp) op {
	if o := c.withLoaded(in); o != nil {
		return o
	}
	d, x, y := c.off(in), c.off(in.X), c.off(in.Y)
	t := in.X.Type()
	switch in.Op {
	case token.EQL, token.NEQ:
		return c.equality(in, d, x, y)
	case token.SHL, token.SHR:
		return c.shift(in, d, x, y)
	}
	k := c.mc.types.layout(t).Kind()
	if o := c.step(in, k, d, x); o != nil {
		return o
	}
	o := arithmetic(in.Op, k, d, x, y)
	if o == nil {
		fail("no operation " + in.String())
	}
	return o
}

// step compiles the sum of an int and a constant, as in i++; nil for anything else.
func (c *compiler) step(in *ssa.BinOp, k reflect.Kind, d, x uintptr) op {
	y, ok := in.Y.(*ssa.Const)
	if !ok || k != reflect.Int && k != reflect.Int64 || in.Op != token.ADD && in.Op != token.SUB {
		return nil
	}
	more := y.Int64()
	if in.Op == token.SUB {
		more = -more
	}
	if d == x {
		return func(m unsafe.Pointer) { *(*int64)(unsafe.Add(m, d)) += more }
	}
	return func(m unsafe.Pointer) { *(*int64)(unsafe.Add(m, d)) = *(*int64)(unsafe.Add(m, x)) + more }
}

func arithmetic(tok token.Token, k reflect.Kind, d, x, y uintptr) op {
	switch k {
	case reflect.Int:
		return intOps[int](tok, d, x, y)
	case reflect.Int8:
		return intOps[int8](tok, d, x, y)
	case reflect.Int16:
		return intOps[int16](tok, d, x, y)
	case reflect.Int32:
		return intOps[int32](tok, d, x, y)
	case reflect.Int64:
		return intOps[int64](tok, d, x, y)
	case reflect.Uint:
		return intOps[uint](tok, d, x, y)
	case reflect.Uint8:
		return intOps[uint8](tok, d, x, y)
	case reflect.Uint16:
		return intOps[uint16](tok, d, x, y)
	case reflect.Uint32:
		return intOps[uint32](tok, d, x, y)
	case reflect.Uint64:
		return intOps[uint64](tok, d, x, y)
	case reflect.Uintptr:
		return intOps[uintptr](tok, d, x, y)
	case reflect.Float32:
		return floatOps[float32](tok, d, x, y)
	case reflect.Float64:
		return floatOps[float64](tok, d, x, y)
	case reflect.Complex64:
		return numOps[complex64](tok, d, x, y)
	case reflect.Complex128:
		return numOps[complex128](tok, d, x, y)
	case reflect.String:
		if tok == token.ADD {
			return func(m unsafe.Pointer) {
				*(*string)(unsafe.Add(m, d)) = *(*string)(unsafe.Add(m, x)) + *(*string)(unsafe.Add(m, y))
			}
		}
		return orderOps[string](tok, d, x, y)
	}
	return nil
}

func intOps[T integer](tok token.Token, d, x, y uintptr) op {
	switch tok {
	case token.REM:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) % *(*T)(unsafe.Add(m, y)) }
	case token.AND:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) & *(*T)(unsafe.Add(m, y)) }
	case token.OR:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) | *(*T)(unsafe.Add(m, y)) }
	case token.XOR:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) ^ *(*T)(unsafe.Add(m, y)) }
	case token.AND_NOT:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) &^ *(*T)(unsafe.Add(m, y)) }
	}
	if o := numOps[T](tok, d, x, y); o != nil {
		return o
	}
	return orderOps[T](tok, d, x, y)
}

func floatOps[T floating](tok token.Token, d, x, y uintptr) op {
	if o := numOps[T](tok, d, x, y); o != nil {
		return o
	}
	return orderOps[T](tok, d, x, y)
}

func numOps[T number](tok token.Token, d, x, y uintptr) op {
	switch tok {
	case token.ADD:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) + *(*T)(unsafe.Add(m, y)) }
	case token.SUB:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) - *(*T)(unsafe.Add(m, y)) }
	case token.MUL:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) * *(*T)(unsafe.Add(m, y)) }
	case token.QUO:
		return func(m unsafe.Pointer) { *(*T)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) / *(*T)(unsafe.Add(m, y)) }
	}
	return nil
}

func orderOps[T cmp.Ordered](tok token.Token, d, x, y uintptr) op {
	switch tok {
	case token.LSS:
		return func(m unsafe.Pointer) { *(*bool)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) < *(*T)(unsafe.Add(m, y)) }
	case token.LEQ:
		return func(m unsafe.Pointer) {
			*(*bool)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) <= *(*T)(unsafe.Add(m, y))
		}
	case token.GTR:
		return func(m unsafe.Pointer) { *(*bool)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) > *(*T)(unsafe.Add(m, y)) }
	case token.GEQ:
		return func(m unsafe.Pointer) {
			*(*bool)(unsafe.Add(m, d)) = *(*T)(unsafe.Add(m, x)) >= *(*T)(unsafe.Add(m, y))
		}
	}
	return nil
}

// equality compiles == and !=. Operands have one form, or one is an interface and the other was converted to it.
func (c *compiler) equality(in *ssa.BinOp, d, x, y uintptr) op {
	xt, yt := in.X.Type(), in.Y.Type()
	eq := c.equal(xt, yt, x, y)
	if in.Op == token.NEQ {
		return func(m unsafe.Pointer) { *(*bool)(unsafe.Add(m, d)) = !eq(m) }
	}
	return func(m unsafe.Pointer) { *(*bool)(unsafe.Add(m, d)) = eq(m) }
}

func (c *compiler) equal(xt, yt types.Type, x, y uintptr) func(m unsafe.Pointer) bool {
	lay := c.mc.types.layout(xt)
	rt := rtypeOf(lay)
	switch xt.Underlying().(type) {
	case *types.Interface:
		ex, ey := isEmptyInterface(xt), isEmptyInterface(yt)
		return func(m unsafe.Pointer) bool {
			a, b := unsafe.Add(m, x), unsafe.Add(m, y)
			return loadAny(a, ex) == loadAny(b, ey)
		}
	case *types.Slice, *types.Map, *types.Signature: // compared with nil
		return func(m unsafe.Pointer) bool {
			return *(*unsafe.Pointer)(unsafe.Add(m, x)) == *(*unsafe.Pointer)(unsafe.Add(m, y))
		}
	}
	switch lay.Kind() {
	case reflect.String:
		return func(m unsafe.Pointer) bool { return *(*string)(unsafe.Add(m, x)) == *(*string)(unsafe.Add(m, y)) }
	case reflect.Float64:
		return func(m unsafe.Pointer) bool { return *(*float64)(unsafe.Add(m, x)) == *(*float64)(unsafe.Add(m, y)) }
	case reflect.Struct, reflect.Array, reflect.Float32, reflect.Complex64, reflect.Complex128:
		if rt.Size == 0 {
			return func(unsafe.Pointer) bool { return true }
		}
		if rt.Equal == nil { // only reached where types were not comparable, which go/types refuses
			fail("the values of a comparison have no equality")
		}
		real := rtypeOf(lay)
		return func(m unsafe.Pointer) bool { return real.Equal(unsafe.Add(m, x), unsafe.Add(m, y)) }
	}
	switch rt.Size {
	case 1:
		return func(m unsafe.Pointer) bool { return *(*uint8)(unsafe.Add(m, x)) == *(*uint8)(unsafe.Add(m, y)) }
	case 2:
		return func(m unsafe.Pointer) bool { return *(*uint16)(unsafe.Add(m, x)) == *(*uint16)(unsafe.Add(m, y)) }
	case 4:
		return func(m unsafe.Pointer) bool { return *(*uint32)(unsafe.Add(m, x)) == *(*uint32)(unsafe.Add(m, y)) }
	}
	return func(m unsafe.Pointer) bool { return *(*uint64)(unsafe.Add(m, x)) == *(*uint64)(unsafe.Add(m, y)) }
}

func isUnsigned(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsUnsigned != 0
}

// readInt returns a reader of an integer of any type, as int64 (the bits of a uint64).
func (c *compiler) readInt(t types.Type, off uintptr) func(unsafe.Pointer) int64 {
	switch c.mc.types.layout(t).Kind() {
	case reflect.Int, reflect.Int64:
		return reader[int64](off)
	case reflect.Int8:
		return reader[int8](off)
	case reflect.Int16:
		return reader[int16](off)
	case reflect.Int32:
		return reader[int32](off)
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return reader[uint64](off)
	case reflect.Uint8:
		return reader[uint8](off)
	case reflect.Uint16:
		return reader[uint16](off)
	case reflect.Uint32:
		return reader[uint32](off)
	}
	fail("not an integer: " + t.String())
	return nil
}

func reader[T integer](off uintptr) func(unsafe.Pointer) int64 {
	return func(m unsafe.Pointer) int64 { return int64(*(*T)(unsafe.Add(m, off))) }
}

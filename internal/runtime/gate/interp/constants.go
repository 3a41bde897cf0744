package interp

import (
	"go/constant"
	"reflect"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

func (c *compiler) constant(v *ssa.Const) uintptr {
	lay := c.mc.types.layout(v.Type())
	key := constKey{t: lay}
	if v.Value != nil {
		key.v = v.Value.ExactString()
	}
	if off, ok := c.consts[key]; ok {
		c.offs[v] = off
		return off
	}
	off := c.alloc(rtypeOf(lay))
	c.offs[v] = off
	c.consts[key] = off
	if v.Value == nil {
		return off // frames start as zeros
	}
	val := constantOf(v, lay)
	rt := rtypeOf(lay)
	src := val.Addr().UnsafePointer()
	c.inits = append(c.inits, func(m unsafe.Pointer) { typedmemmove(rt, unsafe.Add(m, off), src) })
	return off
}

// constantOf returns the value of a constant, which can be addressed.
func constantOf(v *ssa.Const, t reflect.Type) reflect.Value {
	val := reflect.New(t).Elem()
	switch k := t.Kind(); {
	case k == reflect.Bool:
		val.SetBool(constant.BoolVal(v.Value))
	case k == reflect.String:
		val.SetString(constStringOf(v.Value))
	case k == reflect.Float32:
		f, _ := constant.Float32Val(constant.ToFloat(v.Value)) // rounded once
		val.SetFloat(float64(f))
	case k == reflect.Float64:
		f, _ := constant.Float64Val(constant.ToFloat(v.Value))
		val.SetFloat(f)
	case k == reflect.Complex64, k == reflect.Complex128:
		z := constant.ToComplex(v.Value)
		re, _ := constant.Float64Val(constant.Real(z))
		im, _ := constant.Float64Val(constant.Imag(z))
		val.SetComplex(complex(re, im))
	case val.CanInt():
		n, _ := constant.Int64Val(constant.ToInt(v.Value))
		val.SetInt(n)
	case val.CanUint():
		n, _ := constant.Uint64Val(constant.ToInt(v.Value))
		val.SetUint(n)
	default:
		fail("a constant of type " + v.Type().String())
	}
	return val
}

func constStringOf(v constant.Value) string {
	if v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	n, _ := constant.Int64Val(v)
	return string(rune(n))
}

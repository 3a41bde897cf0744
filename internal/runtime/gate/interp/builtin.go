package interp

import (
	"cmp"
	"fmt"
	"go/types"
	"reflect"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// builtin compiles a call of a built-in function; v is nil when it is deferred.
func (c *compiler) builtin(b *ssa.Builtin, cc *ssa.CallCommon, v ssa.Value) op {
	var d uintptr
	if v != nil {
		if t, ok := v.Type().(*types.Tuple); !ok || t.Len() > 0 {
			d = c.off(v)
		}
	} else if cc.Signature().Results().Len() == 1 {
		d = c.alloc(c.layout(cc.Signature().Results().At(0).Type()))
	}
	args := c.args(cc.Args)
	switch b.Name() {
	case "len", "cap":
		return c.length(b.Name(), cc.Args[0], d, args[0].off)
	case "append":
		return c.appendOp(cc, d, args)
	case "copy":
		return c.copyOp(cc, d, args)
	case "delete":
		rt := c.real(cc.Args[0].Type())
		return func(m unsafe.Pointer) {
			mapdelete(rt, *(*unsafe.Pointer)(unsafe.Add(m, args[0].off)), unsafe.Add(m, args[1].off))
		}
	case "clear":
		return c.clearOp(cc.Args[0].Type(), args[0].off)
	case "min", "max":
		return c.minMax(b.Name() == "min", v.Type(), d, args)
	case "panic": // deferred
		x, empty := args[0].off, isEmptyInterface(cc.Args[0].Type())
		return func(m unsafe.Pointer) { panic(loadAny(unsafe.Add(m, x), empty)) }
	case "recover":
		if v == nil {
			return lateRecover
		}
		return func(m unsafe.Pointer) { *(*any)(unsafe.Add(m, d)) = doRecover(m) }
	case "print", "println":
		return func(unsafe.Pointer) {} // a program has no standard error
	case "real", "imag", "complex":
		return c.complexOp(b.Name(), cc, d, args)
	case "close":
		rt := reflectOf(c.real(cc.Args[0].Type()))
		return func(m unsafe.Pointer) { reflect.NewAt(rt, unsafe.Add(m, args[0].off)).Elem().Close() }
	case "ssa:wrapnilchk":
		return c.wrapNilCheck(cc, d, args)
	case "ssa:deferstack":
		return func(m unsafe.Pointer) { *at[*frameHead](m, d) = headOf(m) }
	}
	fail("no built-in " + b.Name())
	return nil
}

func (c *compiler) wrapNilCheck(cc *ssa.CallCommon, d uintptr, args []argument) op {
	return func(m unsafe.Pointer) {
		p := *(*unsafe.Pointer)(unsafe.Add(m, args[0].off))
		if p == nil {
			typ, _, generic := strings.Cut(*(*string)(unsafe.Add(m, args[1].off)), "[")
			arguments := ""
			if generic {
				arguments = "[...]"
			}
			panic(plainText(fmt.Sprintf("value method %s%s.%s called using nil *%s%[2]s pointer",
				typ, arguments, *(*string)(unsafe.Add(m, args[2].off)), typ[strings.LastIndexByte(typ, '.')+1:])))
		}
		*(*unsafe.Pointer)(unsafe.Add(m, d)) = p
	}
}

func (c *compiler) length(name string, arg ssa.Value, d, x uintptr) op {
	switch t := arg.Type().Underlying().(type) {
	case *types.Map:
		return func(m unsafe.Pointer) {
			p := *(*unsafe.Pointer)(unsafe.Add(m, x))
			*(*int)(unsafe.Add(m, d)) = 0
			if p != nil {
				*(*int)(unsafe.Add(m, d)) = maplen(p)
			}
		}
	case *types.Chan:
		rt := reflectOf(c.real(arg.Type()))
		if name == "cap" {
			return func(m unsafe.Pointer) { *(*int)(unsafe.Add(m, d)) = reflect.NewAt(rt, unsafe.Add(m, x)).Elem().Cap() }
		}
		return func(m unsafe.Pointer) { *(*int)(unsafe.Add(m, d)) = reflect.NewAt(rt, unsafe.Add(m, x)).Elem().Len() }
	case *types.Array:
		n := int(t.Len())
		return func(m unsafe.Pointer) { *(*int)(unsafe.Add(m, d)) = n }
	case *types.Pointer:
		n := int(t.Elem().Underlying().(*types.Array).Len())
		return func(m unsafe.Pointer) { *(*int)(unsafe.Add(m, d)) = n }
	}
	fail("no length of " + arg.Type().String())
	return nil
}

// appendOp appends as Go does, growth included: who shares memory with whom is part of a program's meaning.
func (c *compiler) appendOp(cc *ssa.CallCommon, d uintptr, args []argument) op {
	x, y := args[0].off, args[1].off
	elem := c.layout(cc.Args[0].Type().Underlying().(*types.Slice).Elem())
	if b, ok := cc.Args[1].Type().Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
		return func(m unsafe.Pointer) {
			*(*[]byte)(unsafe.Add(m, d)) = append(*(*[]byte)(unsafe.Add(m, x)), *(*string)(unsafe.Add(m, y))...)
		}
	}
	switch classOf(elem) {
	case class1:
		return appendTo[uint8](d, x, y)
	case class2:
		return appendTo[uint16](d, x, y)
	case class4:
		return appendTo[uint32](d, x, y)
	case class8:
		return appendTo[uint64](d, x, y)
	case classPointer:
		return appendTo[unsafe.Pointer](d, x, y)
	case classString:
		return appendTo[string](d, x, y)
	case classSlice:
		return appendTo[[]byte](d, x, y)
	case classIface:
		return appendTo[any](d, x, y)
	}
	return func(m unsafe.Pointer) {
		s, add := *(*sliceHeader)(unsafe.Add(m, x)), *(*sliceHeader)(unsafe.Add(m, y))
		if add.len == 0 {
			*(*sliceHeader)(unsafe.Add(m, d)) = s
			return
		}
		n := s.len + add.len
		if n > s.cap || n < 0 {
			s = growslice(elem, s, add.len)
		}
		tail := sliceHeader{unsafe.Add(s.data, uintptr(s.len)*elem.Size), add.len, add.len}
		typedslicecopy(elem, tail, add)
		s.len = n
		*(*sliceHeader)(unsafe.Add(m, d)) = s
	}
}

func appendTo[T any](d, x, y uintptr) op {
	return func(m unsafe.Pointer) {
		*(*[]T)(unsafe.Add(m, d)) = append(*(*[]T)(unsafe.Add(m, x)), *(*[]T)(unsafe.Add(m, y))...)
	}
}

func (c *compiler) copyOp(cc *ssa.CallCommon, d uintptr, args []argument) op {
	x, y := args[0].off, args[1].off
	if b, ok := cc.Args[1].Type().Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
		return func(m unsafe.Pointer) {
			*(*int)(unsafe.Add(m, d)) = copy(*(*[]byte)(unsafe.Add(m, x)), *(*string)(unsafe.Add(m, y)))
		}
	}
	elem := c.layout(cc.Args[0].Type().Underlying().(*types.Slice).Elem())
	if elem.PtrBytes == 0 && elem.Size > 0 {
		return func(m unsafe.Pointer) {
			to, from := at[sliceHeader](m, x), at[sliceHeader](m, y)
			n := min(to.len, from.len)
			size := uintptr(n) * elem.Size
			if n > 0 {
				copy(unsafe.Slice((*byte)(to.data), size), unsafe.Slice((*byte)(from.data), size))
			}
			*(*int)(unsafe.Add(m, d)) = n
		}
	}
	return func(m unsafe.Pointer) {
		to, from := *(*sliceHeader)(unsafe.Add(m, x)), *(*sliceHeader)(unsafe.Add(m, y))
		n := min(to.len, from.len)
		if elem.Size > 0 && n > 0 {
			typedslicecopy(elem, to, from)
		}
		*(*int)(unsafe.Add(m, d)) = n
	}
}

func (c *compiler) clearOp(t types.Type, x uintptr) op {
	switch u := t.Underlying().(type) {
	case *types.Map:
		rt := c.real(t)
		return func(m unsafe.Pointer) {
			if p := *(*unsafe.Pointer)(unsafe.Add(m, x)); p != nil {
				mapclear(rt, p)
			}
		}
	case *types.Slice:
		elem := c.layout(u.Elem())
		return func(m unsafe.Pointer) {
			s := *(*sliceHeader)(unsafe.Add(m, x))
			for i := range s.len {
				typedmemclr(elem, unsafe.Add(s.data, uintptr(i)*elem.Size))
			}
		}
	}
	fail("cannot clear " + t.String())
	return nil
}

func (c *compiler) minMax(isMin bool, t types.Type, d uintptr, args []argument) op {
	switch c.mc.types.layout(t).Kind() {
	case reflect.Int:
		return minMaxOp[int](isMin, d, args)
	case reflect.Int8:
		return minMaxOp[int8](isMin, d, args)
	case reflect.Int16:
		return minMaxOp[int16](isMin, d, args)
	case reflect.Int32:
		return minMaxOp[int32](isMin, d, args)
	case reflect.Int64:
		return minMaxOp[int64](isMin, d, args)
	case reflect.Uint:
		return minMaxOp[uint](isMin, d, args)
	case reflect.Uint8:
		return minMaxOp[uint8](isMin, d, args)
	case reflect.Uint16:
		return minMaxOp[uint16](isMin, d, args)
	case reflect.Uint32:
		return minMaxOp[uint32](isMin, d, args)
	case reflect.Uint64:
		return minMaxOp[uint64](isMin, d, args)
	case reflect.Uintptr:
		return minMaxOp[uintptr](isMin, d, args)
	case reflect.Float32:
		return minMaxOp[float32](isMin, d, args)
	case reflect.Float64:
		return minMaxOp[float64](isMin, d, args)
	case reflect.String:
		return minMaxOp[string](isMin, d, args)
	}
	fail("no min or max of " + t.String())
	return nil
}

func minMaxOp[T cmp.Ordered](isMin bool, d uintptr, args []argument) op {
	if len(args) > 1 && len(args) < 4 {
		return minMaxFew[T](isMin, d, args)
	}
	return func(m unsafe.Pointer) {
		best := *(*T)(unsafe.Add(m, args[0].off))
		for _, a := range args[1:] {
			if isMin {
				best = min(best, *(*T)(unsafe.Add(m, a.off)))
			} else {
				best = max(best, *(*T)(unsafe.Add(m, a.off)))
			}
		}
		*(*T)(unsafe.Add(m, d)) = best
	}
}

// minMaxFew is minMaxOp of two or three values.
func minMaxFew[T cmp.Ordered](isMin bool, d uintptr, args []argument) op {
	x, y, z := args[0].off, args[1].off, args[len(args)-1].off
	if isMin {
		return func(m unsafe.Pointer) {
			*(*T)(unsafe.Add(m, d)) = min(*(*T)(unsafe.Add(m, x)), *(*T)(unsafe.Add(m, y)), *(*T)(unsafe.Add(m, z)))
		}
	}
	return func(m unsafe.Pointer) {
		*(*T)(unsafe.Add(m, d)) = max(*(*T)(unsafe.Add(m, x)), *(*T)(unsafe.Add(m, y)), *(*T)(unsafe.Add(m, z)))
	}
}

func (c *compiler) complexOp(name string, cc *ssa.CallCommon, d uintptr, args []argument) op {
	x := args[0].off
	small := args[0].rt.Size == 8 && name != "complex" || args[0].rt.Size == 4
	switch {
	case name == "real" && small:
		return func(m unsafe.Pointer) { *(*float32)(unsafe.Add(m, d)) = real(*(*complex64)(unsafe.Add(m, x))) }
	case name == "real":
		return func(m unsafe.Pointer) { *(*float64)(unsafe.Add(m, d)) = real(*(*complex128)(unsafe.Add(m, x))) }
	case name == "imag" && small:
		return func(m unsafe.Pointer) { *(*float32)(unsafe.Add(m, d)) = imag(*(*complex64)(unsafe.Add(m, x))) }
	case name == "imag":
		return func(m unsafe.Pointer) { *(*float64)(unsafe.Add(m, d)) = imag(*(*complex128)(unsafe.Add(m, x))) }
	case small:
		return func(m unsafe.Pointer) {
			*(*complex64)(unsafe.Add(m, d)) = complex(*(*float32)(unsafe.Add(m, x)), *(*float32)(unsafe.Add(m, args[1].off)))
		}
	}
	return func(m unsafe.Pointer) {
		*(*complex128)(unsafe.Add(m, d)) = complex(*(*float64)(unsafe.Add(m, x)), *(*float64)(unsafe.Add(m, args[1].off)))
	}
}

package interp

import (
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/tools/go/ssa"
)

// hostFunc returns the host's function for one without a body.
func (mc *machine) hostFunc(f *ssa.Function) reflect.Value {
	if recv := f.Signature.Recv(); recv != nil {
		rt := mc.types.of(recv.Type())
		m, ok := rt.MethodByName(f.Name())
		if !ok {
			fail("no method " + f.String())
		}
		return m.Func
	}
	obj := f.Object()
	if obj == nil || obj.Pkg() == nil {
		fail("no function " + f.String())
	}
	path, name := pathOf(obj.Pkg()), obj.Name()
	if o := f.Origin(); o != nil && len(f.TypeArgs()) > 0 {
		return mc.generic(path+"."+name, f)
	}
	if v, ok := mc.natives[path+"."+name]; ok {
		return reflect.ValueOf(v)
	}
	v := mc.types.symbol(path, name)
	if v == nil {
		fail("no function " + path + "." + name)
	}
	return reflect.ValueOf(v)
}

// hostVar returns a pointer to the host's variable.
func (mc *machine) hostVar(path, name string) any {
	if v, ok := mc.natives[path+"."+name]; ok {
		return v
	}
	return mc.types.symbol(path, name)
}

// callHost compiles a call of a host function.
func (c *compiler) callHost(callee *ssa.Function, args, results []argument) op {
	fv := c.mc.hostFunc(callee)
	if o := fastCall(fv, args, results); o != nil {
		return o
	}
	mc := c.mc
	if leavesMaps(callee) {
		return func(m unsafe.Pointer) { mc.hostCall(fv, m, args, results) }
	}
	return func(m unsafe.Pointer) {
		mc.forgetOrders()
		mc.hostCall(fv, m, args, results)
	}
}

// leavesMaps reports whether a host function is known to write to no map, but through functions of the program.
func leavesMaps(f *ssa.Function) bool {
	return f.Object() != nil && f.Object().Pkg() != nil && slices.Contains(strings.Fields(
		"bytes errors fmt math math/rand math/rand/v2 regexp sort strconv strings time unicode unicode/utf8"), f.Object().Pkg().Path())
}

// hostCall calls a host function with arguments from the frame. What comes back may have called into the program.
func (mc *machine) hostCall(fv reflect.Value, m unsafe.Pointer, args, results []argument) {
	t := fv.Type()
	in := make([]reflect.Value, len(args))
	for i := range args {
		in[i] = reflect.NewAt(t.In(i), unsafe.Add(m, args[i].off)).Elem()
	}
	mc.deferring = nil
	depth, panicking, pos := mc.depth, mc.panicking, mc.pos
	out := mc.callOut(fv, in)
	if mc.aborted != nil {
		mc.abort(mc.aborted)
	}
	mc.depth, mc.panicking, mc.pos = depth, panicking, pos // the host may have swallowed a panic
	for i := range results {
		reflect.NewAt(t.Out(i), unsafe.Add(m, results[i].off)).Elem().Set(out[i])
	}
}

// callOut calls a host function. If the run is aborted inside it, callOut recovers the panic and returns nil, and its caller panics anew on the
// shorter stack. encoding/json recovers and panics again at every level, each time on top of the stack of the panic before: without this, the time
// would be quadratic in the depth.
func (mc *machine) callOut(fv reflect.Value, in []reflect.Value) (out []reflect.Value) {
	defer func() {
		if mc.aborted != nil {
			_ = recover()
		}
	}()
	if fv.Type().IsVariadic() {
		return fv.CallSlice(in)
	}
	return fv.Call(in)
}

// fastCall returns a direct call for the most common signatures.
func fastCall(fv reflect.Value, args, results []argument) op {
	var a, b, r uintptr
	if len(args) > 0 {
		a = args[0].off
	}
	if len(args) > 1 {
		b = args[1].off
	}
	if len(results) > 0 {
		r = results[0].off
	}
	switch f := fv.Interface().(type) {
	case func(string) string:
		return func(m unsafe.Pointer) { *at[string](m, r) = f(*at[string](m, a)) }
	case func(string, string) bool:
		return func(m unsafe.Pointer) { *at[bool](m, r) = f(*at[string](m, a), *at[string](m, b)) }
	case func(string, string) string:
		return func(m unsafe.Pointer) { *at[string](m, r) = f(*at[string](m, a), *at[string](m, b)) }
	case func(string, string) int:
		return func(m unsafe.Pointer) { *at[int](m, r) = f(*at[string](m, a), *at[string](m, b)) }
	case func(string) []string:
		return func(m unsafe.Pointer) { *at[[]string](m, r) = f(*at[string](m, a)) }
	case func(string, string) []string:
		return func(m unsafe.Pointer) { *at[[]string](m, r) = f(*at[string](m, a), *at[string](m, b)) }
	case func([]string, string) string:
		return func(m unsafe.Pointer) { *at[string](m, r) = f(*at[[]string](m, a), *at[string](m, b)) }
	case func(float64) float64:
		return func(m unsafe.Pointer) { *at[float64](m, r) = f(*at[float64](m, a)) }
	case func(float64, float64) float64:
		return func(m unsafe.Pointer) { *at[float64](m, r) = f(*at[float64](m, a), *at[float64](m, b)) }
	case func(rune) bool:
		return func(m unsafe.Pointer) { *at[bool](m, r) = f(*at[rune](m, a)) }
	case func(rune) rune:
		return func(m unsafe.Pointer) { *at[rune](m, r) = f(*at[rune](m, a)) }
	case func(int) string:
		return func(m unsafe.Pointer) { *at[string](m, r) = f(*at[int](m, a)) }
	case func(string) (int, error):
		return func(m unsafe.Pointer) {
			*at[int](m, r), *at[error](m, results[1].off) = f(*at[string](m, a))
		}
	}
	return nil
}

// generic returns the host's form of a generic function of a package that is not compiled from source.
func (mc *machine) generic(name string, f *ssa.Function) reflect.Value {
	ft := mc.types.of(noReceiver(f.Signature))
	switch name {
	case "errors.AsType":
		as := mc.types.symbol("errors", "As").(func(error, any) bool)
		return reflect.MakeFunc(ft, func(args []reflect.Value) []reflect.Value {
			p := reflect.New(ft.Out(0))
			err, _ := args[0].Interface().(error)
			ok := err != nil && as(err, p.Interface())
			return []reflect.Value{p.Elem(), reflect.ValueOf(ok)}
		})
	case "math/rand/v2.N":
		env := mc.env
		return reflect.MakeFunc(ft, func(args []reflect.Value) []reflect.Value {
			out := reflect.New(ft.Out(0)).Elem()
			if args[0].CanInt() {
				if args[0].Int() <= 0 {
					panic("invalid argument to N")
				}
				out.SetInt(int64(env.Uint64N(uint64(args[0].Int()))))
			} else {
				if args[0].Uint() == 0 {
					panic("invalid argument to N")
				}
				out.SetUint(env.Uint64N(args[0].Uint()))
			}
			return []reflect.Value{out}
		})
	}
	fail("no generic function " + name)
	return reflect.Value{}
}

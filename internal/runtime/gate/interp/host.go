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
	if v, ok := mc.natives.Find(path, name); ok {
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
	if v, ok := mc.natives.Find(path, name); ok {
		return v
	}
	return mc.types.symbol(path, name)
}

// callHost compiles a call of a host function.
func (c *compiler) callHost(callee *ssa.Function, args, results []argument) op {
	fv := c.mc.hostFunc(callee)
	if o := intrinsic(fv, args, results); o != nil {
		return o
	}
	reach := c.mc.reachOf(fv.Type())
	changesMaps := reach&reachesMaps != 0 && !leavesMaps(callee)
	var p passing
	p.addAll(fv.Type(), args)
	direct := c.directCaller(p, fv.Type(), results)
	if direct == nil {
		return c.mc.guarded(reflectCall(fv, args, results), changesMaps)
	}
	*direct.fn = funcPointer(fv)
	if reach == 0 {
		return direct.call
	}
	return c.mc.guarded(direct.call, changesMaps)
}

// leavesMaps reports whether a host function is known to write to no map, but through functions of the program.
func leavesMaps(f *ssa.Function) bool {
	return f.Object() != nil && f.Object().Pkg() != nil && slices.Contains(strings.Fields(
		"bytes errors fmt math math/rand math/rand/v2 regexp sort strconv strings time unicode unicode/utf8"), f.Object().Pkg().Path())
}

// reflectCall calls a host function by reflection, with arguments from the frame.
func reflectCall(fv reflect.Value, args, results []argument) op {
	t := fv.Type()
	return func(m unsafe.Pointer) {
		in := make([]reflect.Value, len(args))
		for i := range args {
			in[i] = reflect.NewAt(t.In(i), unsafe.Add(m, args[i].off)).Elem()
		}
		call := fv.Call
		if t.IsVariadic() {
			call = fv.CallSlice
		}
		for i, out := range call(in) {
			reflect.NewAt(t.Out(i), unsafe.Add(m, results[i].off)).Elem().Set(out)
		}
	}
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

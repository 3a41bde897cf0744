package yaegi

import (
	"fmt"
	"go/constant"
	"go/types"
	"reflect"

	yaegi "github.com/traefik/yaegi/interp"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// exports returns the symbols that the program selects from its imports, and no others: building whole tables would
// cost more than compiling the program.
func exports(p *gate.Program, env *rt.Env) (yaegi.Exports, error) {
	out := yaegi.Exports{}
	for _, imp := range p.Pkg.Imports() {
		// To the interpreter, the doubled slash means the same path. It keeps the interpreter from taking the table for
		// its own standard library, to which it would add its own functions and generic packages.
		out[imp.Path()+"//"+imp.Name()] = map[string]reflect.Value{}
	}
	replaced := symbols.NewNatives(env)
	for _, obj := range p.Info.Uses {
		if obj.Pkg() == nil || obj.Pkg() == p.Pkg || obj.Parent() != obj.Pkg().Scope() {
			continue
		}
		path := symbols.PathOf(obj.Pkg().Path())
		v, err := symbolOf(obj, path, replaced)
		if err != nil {
			return nil, err
		}
		key := path + "//" + obj.Pkg().Name()
		if out[key] == nil {
			out[key] = map[string]reflect.Value{}
		}
		out[key][obj.Name()] = v
	}
	return out, nil
}

// symbolOf returns a symbol in the representation that the interpreter expects: a copy of a variable that can be
// addressed, a nil pointer to a type, a constant.Value for an untyped constant.
func symbolOf(obj types.Object, path string, replaced symbols.Natives) (reflect.Value, error) {
	if v, ok := replaced[path+"."+obj.Name()]; ok {
		return variable(obj, v), nil
	}
	if c, ok := obj.(*types.Const); ok {
		return constantOf(c)
	}
	switch v := symbols.Table(path)[obj.Name()].(type) {
	case nil:
		return reflect.Value{}, fmt.Errorf("yaegi: no symbol %s.%s", path, obj.Name())
	case reflect.Type:
		return reflect.Zero(reflect.PointerTo(v)), nil
	default:
		return variable(obj, v), nil
	}
}

// variable returns the value of a symbol. A variable is copied, so that a program cannot change the original.
func variable(obj types.Object, v any) reflect.Value {
	rv := reflect.ValueOf(v)
	if _, ok := obj.(*types.Var); ok {
		own := reflect.New(rv.Type().Elem()).Elem()
		own.Set(rv.Elem())
		return own
	}
	return rv
}

// constantOf returns the value of a constant. An untyped constant stays one, because its type depends on its use.
func constantOf(c *types.Const) (reflect.Value, error) {
	basic, ok := c.Type().Underlying().(*types.Basic)
	if !ok {
		return reflect.Value{}, fmt.Errorf("yaegi: constant %s of no basic type", c.Name())
	}
	if basic.Kind() == types.UntypedRune { // the interpreter would make it an int
		n, _ := constant.Int64Val(c.Val())
		return reflect.ValueOf(rune(n)), nil
	}
	if basic.Info()&types.IsUntyped != 0 {
		return reflect.ValueOf(c.Val()), nil
	}
	var t reflect.Type
	if named, ok := types.Unalias(c.Type()).(*types.Named); ok {
		t, _ = symbols.Table(symbols.PathOf(named.Obj().Pkg().Path()))[named.Obj().Name()].(reflect.Type)
	} else {
		t = basicTypes()[basic.Kind()]
	}
	if t == nil {
		return reflect.Value{}, fmt.Errorf("yaegi: constant %s has no known type", c.Name())
	}
	v := reflect.New(t).Elem()
	switch {
	case v.CanInt():
		n, _ := constant.Int64Val(constant.ToInt(c.Val()))
		v.SetInt(n)
	case v.CanUint():
		n, _ := constant.Uint64Val(constant.ToInt(c.Val()))
		v.SetUint(n)
	case v.CanFloat():
		f, _ := constant.Float64Val(c.Val())
		v.SetFloat(f)
	case v.Kind() == reflect.String:
		v.SetString(constant.StringVal(c.Val()))
	case v.Kind() == reflect.Bool:
		v.SetBool(constant.BoolVal(c.Val()))
	default:
		return reflect.Value{}, fmt.Errorf("yaegi: constant %s of type %s", c.Name(), t)
	}
	return v, nil
}

// basicTypes maps kinds of constants to their types.
func basicTypes() map[types.BasicKind]reflect.Type {
	return map[types.BasicKind]reflect.Type{
		types.Bool: reflect.TypeFor[bool](), types.String: reflect.TypeFor[string](), types.Int: reflect.TypeFor[int](),
		types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
		types.Int32: reflect.TypeFor[int32](),
		types.Int64: reflect.TypeFor[int64](), types.Uint: reflect.TypeFor[uint](),
		types.Uint8:  reflect.TypeFor[uint8](),
		types.Uint16: reflect.TypeFor[uint16](), types.Uint32: reflect.TypeFor[uint32](),
		types.Uint64:  reflect.TypeFor[uint64](),
		types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
	}
}

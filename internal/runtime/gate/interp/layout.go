package interp

import (
	"fmt"
	"go/types"
	"reflect"
)

// maxLayout bounds the size of a type in bytes.
const maxLayout = 1 << 30

// layout returns a type with the memory form of t, made by reflect alone of types of the binary: size, pointers, equality and the way
// into interfaces are the same. What a pointer, map, channel, function or slice leads to is left out, so a layout is
// complete as soon as it is there, however t refers to itself.
func (tt *typeTable) layout(t types.Type) reflect.Type {
	if rt := tt.layouts.At(t); rt != nil {
		return rt.(reflect.Type)
	}
	rt := tt.makeLayout(types.Unalias(t))
	tt.layouts.Set(t, rt)
	return rt
}

func (tt *typeTable) makeLayout(t types.Type) reflect.Type {
	switch t := t.(type) {
	case *types.Basic:
		return basicType(t)
	case *types.Named:
		if rt := tt.host(t); rt != nil {
			return rt
		}
		return tt.layout(t.Underlying())
	case *types.Pointer:
		return reflect.TypeFor[*byte]()
	case *types.Slice:
		return reflect.TypeFor[[]byte]()
	case *types.Map:
		return reflect.TypeFor[map[int]int]()
	case *types.Chan:
		return reflect.TypeFor[chan int]()
	case *types.Signature:
		return reflect.TypeFor[func()]()
	case *types.Interface:
		if t.NumMethods() == 0 {
			return reflect.TypeFor[any]()
		}
		return reflect.TypeFor[error]()
	case *types.Array:
		elem := tt.layout(t.Elem())
		if t.Len() > 0 && elem.Size() > 0 && uint64(t.Len()) > maxLayout/uint64(elem.Size()) {
			refuse("an array type is larger than 1 GiB")
		}
		return reflect.ArrayOf(int(t.Len()), elem)
	case *types.Struct:
		return tt.structLayout(t)
	}
	fail("no memory form for " + t.String())
	return nil
}

func (tt *typeTable) structLayout(t *types.Struct) reflect.Type {
	size := uintptr(0)
	fields := make([]reflect.StructField, t.NumFields())
	for i := range fields {
		lay := tt.layout(t.Field(i).Type())
		if size += lay.Size(); size > maxLayout {
			refuse("a struct type is larger than 1 GiB")
		}
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: lay}
		if t.Field(i).Name() == "_" {
			fields[i].Name, fields[i].PkgPath = "_", "layout" // keeps it from being hashed; it is never stored to, so it may be compared
		}
	}
	return reflect.StructOf(fields)
}

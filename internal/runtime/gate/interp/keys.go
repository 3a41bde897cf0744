package interp

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// valuePointer returns a pointer to memory that holds v.
func valuePointer(v reflect.Value) unsafe.Pointer {
	if v.CanAddr() {
		return v.Addr().UnsafePointer()
	}
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	return p.UnsafePointer()
}

// sortKeys sorts the keys of a map: numbers by size, strings by bytes, structs and arrays part by part, interfaces by
// type first.
func sortKeys(keys []reflect.Value) {
	if len(keys) < 2 {
		return
	}
	switch keys[0].Kind() {
	case reflect.String:
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.Int(), b.Int()) })
	default:
		slices.SortStableFunc(keys, rt.CompareKeys)
	}
}

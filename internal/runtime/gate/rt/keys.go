package rt

import (
	"cmp"
	"reflect"
	"strings"
)

// CompareKeys compares two map keys in the order in which ranges visit them: numbers by size, strings by bytes, structs
// and arrays element by element, interfaces by type first. It returns 0 for any two pointers or channels.
func CompareKeys(a, b reflect.Value) int {
	switch a.Kind() {
	case reflect.String:
		return strings.Compare(a.String(), b.String())
	case reflect.Bool:
		switch {
		case a.Bool() == b.Bool():
			return 0
		case b.Bool():
			return -1
		}
		return 1
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return cmp.Compare(a.Int(), b.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return cmp.Compare(a.Uint(), b.Uint())
	case reflect.Float32, reflect.Float64:
		return cmp.Compare(a.Float(), b.Float())
	case reflect.Complex64, reflect.Complex128:
		x, y := a.Complex(), b.Complex()
		return cmp.Or(cmp.Compare(real(x), real(y)), cmp.Compare(imag(x), imag(y)))
	case reflect.Struct:
		for i := range a.NumField() {
			if c := CompareKeys(a.Field(i), b.Field(i)); c != 0 {
				return c
			}
		}
		return 0
	case reflect.Array:
		for i := range a.Len() {
			if c := CompareKeys(a.Index(i), b.Index(i)); c != 0 {
				return c
			}
		}
		return 0
	case reflect.Interface:
		return compareInterfaces(a, b)
	}
	return 0 // pointers and channels have no order of their own, so they keep the map's
}

// compareInterfaces orders nil first, then by type, then by value.
func compareInterfaces(a, b reflect.Value) int {
	switch {
	case a.IsNil() && b.IsNil():
		return 0
	case a.IsNil():
		return -1
	case b.IsNil():
		return 1
	}
	x, y := a.Elem(), b.Elem()
	if x.Type() != y.Type() {
		return strings.Compare(x.Type().String(), y.Type().String())
	}
	return CompareKeys(x, y)
}

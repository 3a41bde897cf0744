package jsonenc

import (
	"reflect"
	"unsafe"
)

// omitted returns a function that reports whether a member is omitted: under omitempty as encoding/json defines it, and
// if sparse, when it is zero. It returns nil if members of the type are never omitted.
func omitted(t reflect.Type, omitempty, sparse bool) func(unsafe.Pointer) bool {
	if !omitempty && !sparse {
		return nil
	}
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return len(*(*string)(p)) == 0 }
	case reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	case reflect.Int:
		return func(p unsafe.Pointer) bool { return *(*int)(p) == 0 }
	case reflect.Int64:
		return func(p unsafe.Pointer) bool { return *(*int64)(p) == 0 }
	case reflect.Float64:
		if !omitempty { // a negative zero is kept
			return func(p unsafe.Pointer) bool { return *(*uint64)(p) == 0 }
		}
	case reflect.Pointer, reflect.Map, reflect.Interface:
		if !omitempty || t.Kind() == reflect.Pointer {
			return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
		}
	case reflect.Slice:
		if omitempty || t == rawMessage {
			return func(p unsafe.Pointer) bool { return len(*(*[]byte)(p)) == 0 }
		}
		return func(p unsafe.Pointer) bool { return *(*[]byte)(p) == nil }
	case reflect.Struct:
		if !sparse {
			return nil // omitempty has no effect
		}
	}
	if omitempty {
		return func(p unsafe.Pointer) bool { return emptyValue(reflect.NewAt(t, p).Elem()) }
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
}

// emptyValue reports whether encoding/json omits the value under omitempty.
func emptyValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Array:
		return v.Len() == 0
	}
	return v.IsZero()
}

package interp

import (
	"math"
	"reflect"
	"unsafe"
)

// intrinsic returns a call of one of the functions that the Go compiler makes instructions of; nil for others.
func intrinsic(fv reflect.Value, args, results []argument) op {
	f, ok := fv.Interface().(func(float64) float64)
	if !ok {
		return nil
	}
	a, r := args[0].off, results[0].off
	switch funcPointer(reflect.ValueOf(f)) {
	case funcPointer(reflect.ValueOf(math.Sqrt)):
		return func(m unsafe.Pointer) { put(m, r, math.Sqrt(realAt(m, a))) }
	case funcPointer(reflect.ValueOf(math.Abs)):
		return func(m unsafe.Pointer) { put(m, r, math.Abs(realAt(m, a))) }
	case funcPointer(reflect.ValueOf(math.Floor)):
		return func(m unsafe.Pointer) { put(m, r, math.Floor(realAt(m, a))) }
	case funcPointer(reflect.ValueOf(math.Ceil)):
		return func(m unsafe.Pointer) { put(m, r, math.Ceil(realAt(m, a))) }
	case funcPointer(reflect.ValueOf(math.Trunc)):
		return func(m unsafe.Pointer) { put(m, r, math.Trunc(realAt(m, a))) }
	}
	return nil
}

package interp

import (
	"encoding/binary"
	"math"
	"reflect"
)

// appendComparable appends to b what a value that can be a map's key shares with those equal to it, for hash/maphash.
// Values of NaN, which equal none, share theirs, so that a hash follows from the run's seed.
func appendComparable(b []byte, v any) []byte {
	return appendEqual(b, reflect.ValueOf(v))
}

func appendEqual(b []byte, v reflect.Value) []byte {
	if !v.IsValid() {
		return append(b, 0)
	}
	number := binary.LittleEndian.AppendUint64
	b = append(b, v.Type().String()...)
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.String:
		return append(number(b, uint64(v.Len())), v.String()...)
	case reflect.Float32, reflect.Float64:
		return appendFloat(b, v.Float())
	case reflect.Complex64, reflect.Complex128:
		return appendFloat(appendFloat(b, real(v.Complex())), imag(v.Complex()))
	case reflect.Interface:
		return appendEqual(b, v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			b = appendEqual(b, v.Index(i))
		}
		return b
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" { // blank fields are not compared
				b = appendEqual(b, v.Field(i))
			}
		}
		return b
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return number(b, uint64(v.Pointer()))
	}
	if v.CanInt() {
		return number(b, uint64(v.Int()))
	}
	return number(b, v.Uint())
}

func appendFloat(b []byte, f float64) []byte {
	if f == 0 { // -0 too
		f = 0
	}
	if f != f {
		f = math.NaN()
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

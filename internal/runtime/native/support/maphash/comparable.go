package maphash

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
)

// Comparable returns the hash of a value. Equal values have equal hashes. It panics if the value cannot be compared.
func Comparable[T comparable](seed Seed, v T) uint64 {
	var h Hash
	h.SetSeed(seed)
	h.addValue(v)
	return h.Sum64()
}

// WriteComparable adds a value to h. It panics if the value cannot be compared.
func WriteComparable[T comparable](h *Hash, x T) {
	h.ready()
	h.addValue(x)
}

func (h *Hash) addValue(v any) {
	_ = map[any]bool(nil)[v] // panics with the runtime's message if v cannot be compared
	h.addReflected(reflect.ValueOf(v))
}

// addReflected adds a value with its type, so that equal bytes of different types have different hashes.
func (h *Hash) addReflected(v reflect.Value) {
	if !v.IsValid() {
		h.addNumber(0)
		return
	}
	h.addText(v.Type().String())
	switch v.Kind() {
	case reflect.String:
		h.addText(v.String())
	case reflect.Float32, reflect.Float64:
		h.addFloat(v.Float())
	case reflect.Complex64, reflect.Complex128:
		h.addFloat(real(v.Complex()))
		h.addFloat(imag(v.Complex()))
	case reflect.Interface:
		h.addReflected(v.Elem())
	case reflect.Array:
		for i := range v.Len() {
			h.addReflected(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "_" { // comparison ignores blank fields
				h.addReflected(v.Field(i))
			}
		}
	case reflect.Bool:
		h.add(map[bool]string{true: "t", false: "f"}[v.Bool()])
	// An address differs between runs, but whether it is nil does not.
	case reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		h.add(map[bool]string{true: "nil", false: "address"}[v.IsNil()])
	default:
		if v.CanInt() {
			h.addNumber(uint64(v.Int()))
		} else {
			h.addNumber(v.Uint())
		}
	}
}

func (h *Hash) addText(s string) {
	h.addNumber(uint64(len(s)))
	h.add(s)
}

// addFloat adds 0 for both zeros, and a random number for NaN, which equals nothing.
func (h *Hash) addFloat(f float64) {
	switch {
	case f == 0:
		h.addNumber(0)
	case f != f:
		h.addNumber(support.RandV2.Uint64())
	default:
		h.addNumber(math.Float64bits(f))
	}
}

func (h *Hash) addNumber(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.add(string(b[:]))
}

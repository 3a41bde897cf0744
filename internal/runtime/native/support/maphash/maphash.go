// Package maphash replaces hash/maphash in executables. The hashes of hash/maphash differ between processes. Here a
// hash depends only on its seed and the hashed data, and seeds come from the run's randomness, so a replay computes the
// same hashes. The API and its meaning are those of hash/maphash.
//
// Hashes are 64-bit FNV-1a (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv) over the seed and the data. They
// do not resist an adversary who chooses the data.
package maphash

import (
	"encoding/binary"
	"hash"
	"math"
	"reflect"

	"github.com/recurgentd/recurgentd/internal/runtime/native/support"
)

const (
	offset = 14695981039346656037 // FNV-1a offset basis
	prime  = 1099511628211        // FNV-1a prime
)

// A Seed selects a hash function. The zero value is invalid; only MakeSeed creates a valid one.
type Seed struct{ s uint64 }

// MakeSeed returns a seed from the run's randomness.
func MakeSeed() Seed { return Seed{support.RandV2.Uint64() | 1} }

// A Hash computes the hash of the data written to it. The zero value is ready and draws its seed when it first needs
// one. It is not safe for concurrent use.
type Hash struct {
	_     [0]func() // not comparable
	seed  Seed
	state uint64
}

func (h *Hash) ready() {
	if h.seed.s == 0 {
		h.SetSeed(MakeSeed())
	}
}

// SetSeed sets the seed and discards the data written. It panics if the seed is invalid.
func (h *Hash) SetSeed(seed Seed) {
	if seed.s == 0 {
		panic("maphash: use of uninitialized Seed")
	}
	h.seed = seed
	h.Reset()
}

// Seed returns the seed.
func (h *Hash) Seed() Seed {
	h.ready()
	return h.seed
}

// Reset discards the data written and keeps the seed.
func (h *Hash) Reset() {
	h.ready()
	h.begin()
}

// begin begins anew with the seed as it is.
func (h *Hash) begin() {
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], h.seed.s)
	h.state = offset
	h.add(string(seed[:]))
}

func (h *Hash) add(s string) {
	for i := range len(s) {
		h.state = (h.state ^ uint64(s[i])) * prime
	}
}

// Write adds bytes. It never fails.
func (h *Hash) Write(b []byte) (int, error) { return h.WriteString(string(b)) }

// WriteString adds the bytes of a string. It never fails.
func (h *Hash) WriteString(s string) (int, error) {
	h.ready()
	h.add(s)
	return len(s), nil
}

// WriteByte adds a byte. It never fails.
func (h *Hash) WriteByte(b byte) error {
	_, err := h.Write([]byte{b})
	return err
}

// Sum64 returns the hash of the data written.
func (h *Hash) Sum64() uint64 {
	h.ready()
	x := h.state // the last bytes affect only the lower bits of FNV, so mix them
	x = (x ^ x>>32) * 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// Sum appends the hash to b in big-endian order.
func (h *Hash) Sum(b []byte) []byte { return binary.BigEndian.AppendUint64(b, h.Sum64()) }

// Size returns 8, the length of a hash in bytes.
func (h *Hash) Size() int { return 8 }

// BlockSize returns 128, as hash/maphash does. Writes of other lengths are not slower.
func (h *Hash) BlockSize() int { return 128 }

// Clone returns an independent copy.
func (h *Hash) Clone() (hash.Cloner, error) {
	h.ready()
	c := *h
	return &c, nil
}

// Bytes returns the hash of the bytes.
func Bytes(seed Seed, b []byte) uint64 { return String(seed, string(b)) }

// String returns the hash of the string.
func String(seed Seed, s string) uint64 {
	var h Hash
	h.SetSeed(seed)
	h.add(s)
	return h.Sum64()
}

// Comparable returns the hash of a value. Equal values have equal hashes. It panics if the value cannot be compared.
func Comparable[T comparable](seed Seed, v T) uint64 {
	h := Hash{seed: seed} // as hash/maphash, it takes the zero value, too
	h.begin()
	h.addValue(v)
	return h.state
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

package support

import (
	"math"
	"math/rand/v2"
	"testing"
)

// samples returns numbers that operations treat specially, and some ordinary ones.
func samples() []complex128 {
	parts := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 3, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1 << 53}
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		parts = append(parts, math.Float64frombits(r.Uint64()), r.NormFloat64())
	}
	var all []complex128
	for _, x := range parts {
		for _, y := range parts {
			all = append(all, complex(x, y))
		}
	}
	return all
}

func same(x, y complex128) bool { return samePart(real(x), real(y)) && samePart(imag(x), imag(y)) }

func samePart(x, y float64) bool {
	return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
}

type (
	wide   complex128
	narrow complex64
)

// On a processor for which the compiler fuses nothing, the functions return what its own operations return, for complex
// numbers of all types.
func TestComplexIsTheCompilers(t *testing.T) {
	t.Parallel()
	if x, y, z := opaque(0.1), opaque(10), opaque(-1); x*y+z != 0 {
		t.Skip("this processor's compiler fuses")
	}
	all := samples()
	for _, x := range all {
		for _, y := range all {
			if got := Product(x, y); !same(got, x*y) {
				t.Fatalf("%v*%v: got %v, want %v", x, y, got, x*y)
			}
			if got := Quotient(wide(x), wide(y)); !same(complex128(got), x/y) {
				t.Fatalf("%v/%v: got %v, want %v", x, y, got, x/y)
			}
			a, b := narrow(x), narrow(y)
			if got := ProductOf(a, b); !same(complex128(got), complex128(a*b)) {
				t.Fatalf("%v*%v: got %v, want %v", a, b, got, a*b)
			}
			if got := QuotientOf(a, b); !same(complex128(got), complex128(a/b)) {
				t.Fatalf("%v/%v: got %v, want %v", a, b, got, a/b)
			}
		}
	}
}

//go:noinline
func opaque(f float64) float64 { return f }

func TestNumbersOf(t *testing.T) {
	t.Parallel()
	if got := ProductOf(6, 7); got != 42 {
		t.Errorf("got %d", got)
	}
	if got := QuotientOf(wide(6+2i), 2); got != 3+1i {
		t.Errorf("got %v", got)
	}
	m := map[any]float32{"a": 3}
	In(m).Multiply("a", 1.5)
	In(m).Divide("b", 2)
	x := 9i
	Multiply(&x, 2)
	Divide(&x, 3)
	if m["a"] != 4.5 || len(m) != 2 || x != 6i {
		t.Errorf("got %v %v", m, x)
	}
}

package support

import (
	"math"
	"reflect"
	"unsafe"
)

// The functions below compute products and quotients of floating-point and complex numbers, each rounded separately.
// Without the explicit conversions, a compiler may fuse a product with a sum and round only once.

type complexNumber interface{ ~complex64 | ~complex128 }

type number interface {
	integer | ~float32 | ~float64 | complexNumber
}

// Rounded returns v, a product or quotient that is not complex, rounded to its type.
func Rounded[T number](v T) T { return T(v) }

// Product returns x*y.
func Product[T complexNumber](x, y T) T { return T(product(complex128(x), complex128(y))) }

// Quotient returns x/y.
func Quotient[T complexNumber](x, y T) T { return T(quotient(complex128(x), complex128(y))) }

// ProductOf returns x*y of numbers of any type.
func ProductOf[T number](x, y T) T {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Complex64:
		z := Product(*in[complex64](&x), *in[complex64](&y))
		return *in[T](&z)
	case reflect.Complex128:
		z := Product(*in[complex128](&x), *in[complex128](&y))
		return *in[T](&z)
	}
	return T(x * y)
}

// QuotientOf returns x/y of numbers of any type.
func QuotientOf[T number](x, y T) T {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Complex64:
		z := Quotient(*in[complex64](&x), *in[complex64](&y))
		return *in[T](&z)
	case reflect.Complex128:
		z := Quotient(*in[complex128](&x), *in[complex128](&y))
		return *in[T](&z)
	}
	return T(x / y)
}

// in reinterprets the memory of p as a To. One type must be the underlying type of the other.
func in[To, From any](p *From) *To { return (*To)(unsafe.Pointer(p)) }

// Multiply sets *p to *p * y.
func Multiply[T number](p *T, y T) { *p = ProductOf(*p, y) }

// Divide sets *p to *p / y.
func Divide[T number](p *T, y T) { *p = QuotientOf(*p, y) }

// Elements gives access to the elements of a map, which are not addressable.
type Elements[K comparable, V number] map[K]V

// In returns the Elements of m.
func In[M ~map[K]V, K comparable, V number](m M) Elements[K, V] { return Elements[K, V](m) }

// Multiply sets m[k] to m[k] * y.
func (m Elements[K, V]) Multiply(k K, y V) { m[k] = ProductOf(m[k], y) }

// Divide sets m[k] to m[k] / y.
func (m Elements[K, V]) Divide(k K, y V) { m[k] = QuotientOf(m[k], y) }

// product returns x*y as the compiler for amd64 computes it.
func product(x, y complex128) complex128 {
	a, b, c, d := real(x), imag(x), real(y), imag(y)
	return complex(float64(a*c)-float64(b*d), float64(a*d)+float64(b*c))
}

// quotient returns x/y as package runtime computes it (complex128div): by R. L. Smith's algorithm (Communications of
// the ACM 5(8), 1962), and by the rules of C99 (annex G.5.1) if the result is NaN.
func quotient(x, y complex128) complex128 {
	a, b, c, d := real(x), imag(x), real(y), imag(y)
	var e, f float64
	if math.Abs(c) >= math.Abs(d) {
		ratio := float64(d / c)
		by := c + float64(ratio*d)
		e, f = float64((a+float64(b*ratio))/by), float64((b-float64(a*ratio))/by)
	} else {
		ratio := float64(c / d)
		by := d + float64(ratio*c)
		e, f = float64((float64(a*ratio)+b)/by), float64((float64(b*ratio)-a)/by)
	}
	if math.IsNaN(e) && math.IsNaN(f) {
		return special(x, y, complex(e, f))
	}
	return complex(e, f)
}

// special returns x/y if a part is infinite or y is zero, otherwise computed.
func special(x, y, computed complex128) complex128 {
	a, b, c, d := real(x), imag(x), real(y), imag(y)
	switch {
	case c == 0 && d == 0 && (!math.IsNaN(a) || !math.IsNaN(b)):
		infinite := math.Copysign(math.Inf(1), c)
		return complex(infinite*a, infinite*b)
	case (math.IsInf(a, 0) || math.IsInf(b, 0)) && finite(c) && finite(d):
		a, b = unit(a), unit(b)
		return complex(math.Inf(1)*(float64(a*c)+float64(b*d)), math.Inf(1)*(float64(b*c)-float64(a*d)))
	case (math.IsInf(c, 0) || math.IsInf(d, 0)) && finite(a) && finite(b):
		c, d = unit(c), unit(d)
		return complex(0*(float64(a*c)+float64(b*d)), 0*(float64(b*c)-float64(a*d)))
	}
	return computed
}

// finite reports whether f is neither NaN nor infinite.
func finite(f float64) bool { return !math.IsNaN(f - f) }

// unit returns 1 for an infinity and 0 for anything else, with the sign of f.
func unit(f float64) float64 {
	if math.IsInf(f, 0) {
		return math.Copysign(1, f)
	}
	return math.Copysign(0, f)
}

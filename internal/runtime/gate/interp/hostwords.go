package interp

import "unsafe"

// Go hands over arguments and results word by word: whole numbers and pointers in one set of registers, floating-point numbers in another. So functions
// are called alike whose arguments take the same number of words of each kind and whose results look alike to the collector, whatever
// their types are. The functions in this file make such calls. Registers that a function does not expect do not matter to it.
//
// fn points to the function value. w has where the words of the arguments stand in the frame, r, s and t where the results go. Words are
// read as numbers: the frame keeps alive what they point to.
//
// calls0 to calls3 are for functions with that number of results; rare1 and rare2 are smaller and slower; reals1 and reals2 take floating-point
// numbers too, which stand at x.

func wordAt(m unsafe.Pointer, off uintptr) uintptr { return *(*uintptr)(unsafe.Add(m, off)) }

func realAt(m unsafe.Pointer, off uintptr) float64 { return *(*float64)(unsafe.Add(m, off)) }

func put[R any](m unsafe.Pointer, off uintptr, v R) { *(*R)(unsafe.Add(m, off)) = v }

const (
	maxWords = 9 // registers on amd64
	maxReals = 4 // as many as any allowed function has
	maxMixed = 6 // words beside floating-point numbers
)

// padded returns the offsets with others behind them, where the frame has something to read.
func padded(w []uintptr, n int) []uintptr {
	return append(w[:len(w):len(w)], make([]uintptr, n-len(w))...)
}

func calls0(fn *unsafe.Pointer, w []uintptr) op {
	switch len(w) {
	case 1:
		a := w[0]
		return func(m unsafe.Pointer) { (*(*func(_ uintptr))(unsafe.Pointer(fn)))(wordAt(m, a)) }
	case 2:
		a, b := w[0], w[1]
		return func(m unsafe.Pointer) { (*(*func(_, _ uintptr))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b)) }
	case 3:
		a, b, c := w[0], w[1], w[2]
		return func(m unsafe.Pointer) {
			(*(*func(_, _, _ uintptr))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c))
		}
	case 4:
		a, b, c, d := w[0], w[1], w[2], w[3]
		return func(m unsafe.Pointer) {
			(*(*func(_, _, _, _ uintptr))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d))
		}
	}
	w = padded(w, maxWords)
	a, b, c, d, e, f, g, h, i := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]
	return func(m unsafe.Pointer) {
		(*(*func(_, _, _, _, _, _, _, _, _ uintptr))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d), wordAt(m, e), wordAt(m, f), wordAt(m, g), wordAt(m, h), wordAt(m, i))
	}
}

func calls1[R any](fn *unsafe.Pointer, w []uintptr, r uintptr) op {
	switch len(w) {
	case 1:
		a := w[0]
		return func(m unsafe.Pointer) {
			put(m, r, (*(*func(_ uintptr) R)(unsafe.Pointer(fn)))(wordAt(m, a)))
		}
	case 2:
		a, b := w[0], w[1]
		return func(m unsafe.Pointer) {
			put(m, r, (*(*func(_, _ uintptr) R)(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b)))
		}
	case 3:
		a, b, c := w[0], w[1], w[2]
		return func(m unsafe.Pointer) {
			put(m, r, (*(*func(_, _, _ uintptr) R)(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c)))
		}
	case 4:
		a, b, c, d := w[0], w[1], w[2], w[3]
		return func(m unsafe.Pointer) {
			put(m, r, (*(*func(_, _, _, _ uintptr) R)(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d)))
		}
	}
	return rare1[R](fn, w, r)
}

func rare1[R any](fn *unsafe.Pointer, w []uintptr, r uintptr) op {
	w = padded(w, maxWords)
	a, b, c, d, e, f, g, h, i := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]
	return func(m unsafe.Pointer) {
		put(m, r, (*(*func(_, _, _, _, _, _, _, _, _ uintptr) R)(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d), wordAt(m, e), wordAt(m, f), wordAt(m, g), wordAt(m, h), wordAt(m, i)))
	}
}

func reals1[R any](fn *unsafe.Pointer, w, x []uintptr, r uintptr) op {
	if len(w) == 0 && len(x) == 1 {
		a := x[0]
		return func(m unsafe.Pointer) {
			put(m, r, (*(*func(_ float64) R)(unsafe.Pointer(fn)))(realAt(m, a)))
		}
	}
	if len(w) > maxMixed || len(x) > maxReals {
		return nil
	}
	x, w = padded(x, maxReals), padded(w, maxMixed)
	a, b, c, d, e, f, g, h, i, j := x[0], x[1], x[2], x[3], w[0], w[1], w[2], w[3], w[4], w[5]
	return func(m unsafe.Pointer) {
		put(m, r, (*(*func(_, _, _, _ float64, _, _, _, _, _, _ uintptr) R)(unsafe.Pointer(fn)))(realAt(m, a), realAt(m, b), realAt(m, c), realAt(m, d), wordAt(m, e), wordAt(m, f), wordAt(m, g), wordAt(m, h), wordAt(m, i), wordAt(m, j)))
	}
}

func calls2[R, S any](fn *unsafe.Pointer, w []uintptr, r, s uintptr) op {
	switch len(w) {
	case 1:
		a := w[0]
		return func(m unsafe.Pointer) {
			p, q := (*(*func(_ uintptr) (R, S))(unsafe.Pointer(fn)))(wordAt(m, a))
			put(m, r, p)
			put(m, s, q)
		}
	case 2:
		a, b := w[0], w[1]
		return func(m unsafe.Pointer) {
			p, q := (*(*func(_, _ uintptr) (R, S))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b))
			put(m, r, p)
			put(m, s, q)
		}
	case 3:
		a, b, c := w[0], w[1], w[2]
		return func(m unsafe.Pointer) {
			p, q := (*(*func(_, _, _ uintptr) (R, S))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c))
			put(m, r, p)
			put(m, s, q)
		}
	case 4:
		a, b, c, d := w[0], w[1], w[2], w[3]
		return func(m unsafe.Pointer) {
			p, q := (*(*func(_, _, _, _ uintptr) (R, S))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d))
			put(m, r, p)
			put(m, s, q)
		}
	}
	return rare2[R, S](fn, w, r, s)
}

func rare2[R, S any](fn *unsafe.Pointer, w []uintptr, r, s uintptr) op {
	w = padded(w, maxWords)
	a, b, c, d, e, f, g, h, i := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]
	return func(m unsafe.Pointer) {
		p, q := (*(*func(_, _, _, _, _, _, _, _, _ uintptr) (R, S))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d), wordAt(m, e), wordAt(m, f), wordAt(m, g), wordAt(m, h), wordAt(m, i))
		put(m, r, p)
		put(m, s, q)
	}
}

func reals2[R, S any](fn *unsafe.Pointer, w, x []uintptr, r, s uintptr) op {
	if len(w) > maxMixed || len(x) > maxReals {
		return nil
	}
	x, w = padded(x, maxReals), padded(w, maxMixed)
	a, b, c, d, e, f, g, h, i, j := x[0], x[1], x[2], x[3], w[0], w[1], w[2], w[3], w[4], w[5]
	return func(m unsafe.Pointer) {
		p, q := (*(*func(_, _, _, _ float64, _, _, _, _, _, _ uintptr) (R, S))(unsafe.Pointer(fn)))(realAt(m, a), realAt(m, b), realAt(m, c), realAt(m, d), wordAt(m, e), wordAt(m, f), wordAt(m, g), wordAt(m, h), wordAt(m, i), wordAt(m, j))
		put(m, r, p)
		put(m, s, q)
	}
}

func calls3[R, S, T any](fn *unsafe.Pointer, w []uintptr, r, s, t uintptr) op {
	w = padded(w, maxWords)
	a, b, c, d, e, f, g, h, i := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]
	return func(m unsafe.Pointer) {
		p, q, v := (*(*func(_, _, _, _, _, _, _, _, _ uintptr) (R, S, T))(unsafe.Pointer(fn)))(wordAt(m, a), wordAt(m, b), wordAt(m, c), wordAt(m, d), wordAt(m, e), wordAt(m, f), wordAt(m, g), wordAt(m, h), wordAt(m, i))
		put(m, r, p)
		put(m, s, q)
		put(m, t, v)
	}
}

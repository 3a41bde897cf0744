package interp

//lint:file-ignore U1000,SA4000 faults on purpose; what it takes in is not left out by the compiler

import (
	"errors"
	"reflect"
	"sync"
	"unsafe"
)

// A program sees the runtime's errors with their types. So they are never written here: this file does what makes the runtime panic.

// caught returns the error with which f panics.
func caught(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return errors.New("no panic") // some f did not do what it is there for: TestRuntimeErrors
}

var (
	errMakeLen  = sync.OnceValue(func() error { return caught(func() { made = make([]byte, negative()) }) })
	errMakeCap  = sync.OnceValue(func() error { return caught(func() { made = make([]byte, 0, negative()) }) })
	errMakeChan = sync.OnceValue(func() error { return caught(func() { made = make(chan byte, negative()) }) })

	// The body of a loop over a function is called again after it ended the loop, after it panicked, after the function has returned;
	// and its panic is lost.
	errLoopLeft = sync.OnceValue(func() error {
		return caught(func() {
			for range func(yield func() bool) { _ = yield() || yield() } {
				break
			}
		})
	})
	errLoopPanicked = sync.OnceValue(func() error {
		return caught(func() {
			for range func(yield func() bool) { _ = caught(func() { yield() }); yield() } {
				panic(nil)
			}
		})
	})
	errLoopOver = sync.OnceValue(func() error {
		return caught(func() {
			var late func() bool
			for range func(yield func() bool) { late = yield } {
			}
			late()
		})
	})
	errLoopPanicLost = sync.OnceValue(func() error {
		return caught(func() {
			for range func(yield func() bool) { _ = caught(func() { yield() }) } {
				panic(nil)
			}
		})
	})
)

// made keeps the compiler from leaving out what fills it, and negative a length from being a constant.
var made any

//go:noinline
func negative() int { return -1 }

// Errors of bounds hold two numbers, x and y in the runtime's words, and whether x is signed.
var (
	errSliceLen     = sync.OnceValue(func() error { n := -negative(); return caught(func() { made = ""[:n] }) })
	errSliceLenU    = sync.OnceValue(func() error { n := uint64(-negative()); return caught(func() { made = ""[:n] }) })
	errSliceMaxLen  = sync.OnceValue(func() error { n := -2 * negative(); return caught(func() { made = new([1]byte)[0:0:n] }) })
	errSliceMaxLenU = sync.OnceValue(func() error {
		n := uint64(-2 * negative())
		return caught(func() { made = new([1]byte)[0:0:n] })
	})
	errConvert = sync.OnceValue(func() error { n := -negative(); return caught(func() { made = [2]byte(make([]byte, n)) }) })
)

// boundsLike returns an error like err, with other numbers.
func boundsLike(err error, x uint64, y int) error {
	v := reflect.New(reflect.TypeOf(err)).Elem()
	v.Set(reflect.ValueOf(err))
	set := func(name string, n int64) {
		f := v.FieldByName(name)
		reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().SetInt(n)
	}
	set("x", int64(x))
	set("y", int64(y))
	return v.Interface().(error)
}

// plainText returns a runtime error that has nothing but a text.
func plainText(text string) error {
	v := reflect.New(reflect.TypeOf(errMakeChan())).Elem()
	v.SetString(text)
	return v.Interface().(error)
}

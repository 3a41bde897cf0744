package interp

import (
	crand "crypto/rand"
	"io"
	"iter"
	"maps"
	"math/big"
	"math/rand"
	randv2 "math/rand/v2"
	"reflect"
	"time"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// natives returns what stands in for host symbols: clock and chance come from env, there is no terminal, and the generic
// packages get from the host what cannot be written in Go.
func natives(env *rt.Env) map[string]any {
	n := map[string]any{
		"time.Now":   env.Now,
		"time.Since": func(t time.Time) time.Duration { return env.Now().Sub(t) },
		"time.Until": func(t time.Time) time.Duration { return t.Sub(env.Now()) },
		"time.Sleep": env.Sleep,

		"crypto/rand.Read":   env.Read,
		"crypto/rand.Text":   env.Text,
		"crypto/rand.Int":    func(r io.Reader, limit *big.Int) (*big.Int, error) { return crand.Int(r, limit) },
		"crypto/rand.Reader": newOf[io.Reader](readerFunc(env.Read)),

		"fmt.Print":   func(...any) (int, error) { return 0, nil },
		"fmt.Println": func(...any) (int, error) { return 0, nil },
		"fmt.Printf":  func(string, ...any) (int, error) { return 0, nil },
		"fmt.Scan":    func(...any) (int, error) { return 0, io.EOF },
		"fmt.Scanln":  func(...any) (int, error) { return 0, io.EOF },
		"fmt.Scanf":   func(string, ...any) (int, error) { return 0, io.EOF },

		"slices.overlap": overlap,
		"maps.clone":     cloneMap,
		"iter.pull":      pull,
	}
	addMethods(n, "math/rand", reflect.ValueOf(rand.New(&sourceV1{env})))
	addMethods(n, "math/rand/v2", reflect.ValueOf(randv2.New(env)))
	return n
}

func newOf[T any](v T) *T { return &v }

// addMethods puts the methods of a generator in the place of the package's functions of the same names.
func addMethods(n map[string]any, path string, r reflect.Value) {
	for name := range maps.Keys(symbols.Table(path)) {
		if m := r.MethodByName(name); m.IsValid() {
			n[path+"."+name] = m.Interface()
		}
	}
}

type sourceV1 struct{ env *rt.Env }

func (s *sourceV1) Int63() int64   { return int64(s.env.Uint64() >> 1) }
func (s *sourceV1) Uint64() uint64 { return s.env.Uint64() }
func (s *sourceV1) Seed(int64)     {}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// overlap reports whether two non-empty slices of one type share memory.
func overlap(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	size := x.Type().Elem().Size()
	if size == 0 {
		return false
	}
	p, q := uintptr(x.UnsafePointer()), uintptr(y.UnsafePointer())
	return p < q+uintptr(y.Len())*size && q < p+uintptr(x.Len())*size
}

func cloneMap(m any) any {
	v := reflect.ValueOf(m)
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		out.SetMapIndex(it.Key(), it.Value())
	}
	return out.Interface()
}

// pull is iter.Pull for a sequence of nothing; the generic Pull is built upon it.
func pull(seq func(yield func() bool)) (next func() bool, stop func()) {
	step, stop := iter.Pull(func(yield func(struct{}) bool) {
		seq(func() bool { return yield(struct{}{}) })
	})
	return func() bool { _, ok := step(); return ok }, stop
}

var _ unsafe.Pointer

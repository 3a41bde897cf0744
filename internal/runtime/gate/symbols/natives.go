package symbols

import (
	crand "crypto/rand"
	"io"
	"maps"
	"math/big"
	"math/rand"
	randv2 "math/rand/v2"
	"reflect"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// Natives returns what stands in for host symbols, by path and name: clock and randomness come from env, and there is no terminal.
// Both engines use it, so that a program draws the same under each.
func Natives(env *rt.Env) map[string]any {
	var source io.Reader = reader(env.Read)
	n := map[string]any{
		"time.Now":   env.Now,
		"time.Since": func(t time.Time) time.Duration { return env.Now().Sub(t) },
		"time.Until": func(t time.Time) time.Duration { return t.Sub(env.Now()) },
		"time.Sleep": env.Sleep,

		"crypto/rand.Read":   env.Read,
		"crypto/rand.Text":   env.Text,
		"crypto/rand.Int":    func(r io.Reader, limit *big.Int) (*big.Int, error) { return crand.Int(r, limit) },
		"crypto/rand.Reader": &source,

		"fmt.Print":   func(...any) (int, error) { return 0, nil },
		"fmt.Println": func(...any) (int, error) { return 0, nil },
		"fmt.Printf":  func(string, ...any) (int, error) { return 0, nil },
		"fmt.Scan":    func(...any) (int, error) { return 0, io.EOF },
		"fmt.Scanln":  func(...any) (int, error) { return 0, io.EOF },
		"fmt.Scanf":   func(string, ...any) (int, error) { return 0, io.EOF },
	}
	addMethods(n, "math/rand", reflect.ValueOf(rand.New(&sourceV1{env})))
	addMethods(n, "math/rand/v2", reflect.ValueOf(randv2.New(env)))
	return n
}

// addMethods puts the methods of a generator in the place of the package's functions of the same names.
func addMethods(n map[string]any, path string, r reflect.Value) {
	for name := range maps.Keys(Table(path)) {
		if m := r.MethodByName(name); m.IsValid() {
			n[path+"."+name] = m.Interface()
		}
	}
}

type sourceV1 struct{ env *rt.Env }

func (s *sourceV1) Int63() int64   { return int64(s.env.Uint64() >> 1) }
func (s *sourceV1) Uint64() uint64 { return s.env.Uint64() }
func (s *sourceV1) Seed(int64)     {}

type reader func([]byte) (int, error)

func (f reader) Read(p []byte) (int, error) { return f(p) }

package symbols

import (
	crand "crypto/rand"
	"io"
	"math/big"
	randv2 "math/rand/v2"
	"reflect"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// Natives are what stands in for host symbols: clock and randomness come from an environment, and there is no terminal. Both engines use it, so that a
// program draws the same under each.
type Natives struct {
	named      map[string]any           // by path and name
	generators map[string]reflect.Value // by path: their methods take the place of the package's functions of the same names
}

// NewNatives returns the natives of an environment.
func NewNatives(env *rt.Env) *Natives {
	var source io.Reader = reader(env.Read)
	named := map[string]any{
		"time.Now":   env.Now,
		"time.Since": func(t time.Time) time.Duration { return env.Now().Sub(t) },
		"time.Until": func(t time.Time) time.Duration { return t.Sub(env.Now()) },
		"time.Sleep": env.Sleep,

		"time.LoadLocation": rt.LoadLocation,

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
	return &Natives{named, map[string]reflect.Value{"math/rand": reflect.ValueOf(env.V1()), "math/rand/v2": reflect.ValueOf(randv2.New(env))}}
}

// Add adds a native under a path and a name with a dot between them.
func (n *Natives) Add(name string, v any) { n.named[name] = v }

// Find returns what stands in for the package's symbol of that name, if anything does.
func (n *Natives) Find(path, name string) (v any, ok bool) {
	if v, ok := n.named[path+"."+name]; ok {
		return v, true
	}
	if g, ok := n.generators[path]; ok {
		if m := g.MethodByName(name); m.IsValid() {
			return m.Interface(), true
		}
	}
	return nil, false
}

type reader func([]byte) (int, error)

func (f reader) Read(p []byte) (int, error) { return f(p) }

package yaegi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

const arithmetic = `package tool

import "recurgent"

func Run(call *recurgent.Call) (any, error) {
	a, ok := call.Arg(0, "a").(float64)
	b, ok2 := call.Arg(1, "b").(float64)
	if !ok || !ok2 {
		return nil, recurgent.Fail("invalid_input", "two numbers are needed")
	}
	return a*b + 1, nil
}
`

// A warm call of a small program on either engine (docs/decisions/0007-two-engines.md has the figures).
func BenchmarkWarm(b *testing.B) {
	p := check(b, arithmetic)
	y, err := Compile(p)
	if err != nil {
		b.Fatal(err)
	}
	s, err := interp.Compile(p)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	call, err := recurgent.New(recurgent.Input{Args: []json.RawMessage{[]byte("2"), []byte("3")}}, nobody{})
	if err != nil {
		b.Fatal(err)
	}
	for name, e := range map[string]engine{"yaegi": y, "ssa": s} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Begin(time.Time{}, 1)
				if v, err, p := e.Run(call); v != 7.0 || err != nil || p != nil {
					b.Fatal(v, err, p)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	p := check(b, arithmetic)
	b.Run("yaegi", func(b *testing.B) {
		for b.Loop() {
			if _, err := Compile(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ssa", func(b *testing.B) {
		for b.Loop() {
			c, err := interp.Compile(p)
			if err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
}

package yaegi_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
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

// BenchmarkWarm measures a warm call of a small program.
func BenchmarkWarm(b *testing.B) {
	c, err := yaegi.Compile(check(b, arithmetic))
	if err != nil {
		b.Fatal(err)
	}
	call, err := recurgent.New(recurgent.Input{Args: []json.RawMessage{[]byte("2"), []byte("3")}}, nobody{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Begin(time.Time{}, 1)
		if v, err, p := c.Run(call); v != 7.0 || err != nil || p != nil {
			b.Fatal(v, err, p)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	p := check(b, arithmetic)
	for b.Loop() {
		if _, err := yaegi.Compile(p); err != nil {
			b.Fatal(err)
		}
	}
}

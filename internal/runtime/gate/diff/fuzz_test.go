package diff

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
)

// FuzzGate feeds the gate whatever bytes: it neither panics nor hangs, and what it accepts compiles.
func FuzzGate(f *testing.F) {
	files, err := filepath.Glob("testdata/recorded/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files[:5] {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("package tool\nimport \"recurgent\"\nfunc Run(call *recurgent.Call) (any, error) { return nil, nil }\n")
	f.Add("package tool\nimport \"recurgent\"\ntype L[T any] struct{ n *L[L[T]] }\nfunc Run(call *recurgent.Call) (any, error) { return L[int]{}, nil }\n")
	g, err := gate.New(gate.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, refusal := g.Check(source)
		if (p == nil) == (refusal == nil) {
			t.Fatal("neither or both of program and refusal")
		}
		if refusal != nil {
			if refusal.Message == "" || strings.Contains(refusal.Message, "could not be checked") {
				t.Fatalf("refused as %q", refusal.Message)
			}
			return
		}
		c, err := interp.Compile(p)
		if err != nil {
			if !strings.Contains(err.Error(), "too many") && !strings.Contains(err.Error(), "too large") && !strings.Contains(err.Error(), "larger than") {
				t.Fatalf("accepted, but: %v", err)
			}
			return
		}
		c.Close()
	})
}

// BenchmarkGate is the gate's time for a 60-line program; BenchmarkCompile the engine's.
func BenchmarkGate(b *testing.B) {
	source := benchSource(b)
	g, err := gate.New(gate.Options{})
	if err != nil {
		b.Fatal(err)
	}
	g.Check(source)
	for b.Loop() {
		if _, r := g.Check(source); r != nil {
			b.Fatal(r.Message)
		}
	}
}

func BenchmarkGateFirst(b *testing.B) {
	source := benchSource(b)
	for b.Loop() {
		g, err := gate.New(gate.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, r := g.Check(source); r != nil {
			b.Fatal(r.Message)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	source := benchSource(b)
	g, err := gate.New(gate.Options{})
	if err != nil {
		b.Fatal(err)
	}
	p, r := g.Check(source)
	if r != nil {
		b.Fatal(r.Message)
	}
	for b.Loop() {
		c, err := interp.Compile(p)
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

func BenchmarkRun(b *testing.B) {
	g, err := gate.New(gate.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const head = "package tool\nimport \"recurgent\"\nfunc Run(call *recurgent.Call) (any, error) {\n"
	for name, body := range map[string]string{
		"empty":  "return 1, nil",
		"loop1M": "n := 0\nfor i := 0; i < 1000000; i++ { n += i % 7 }\nreturn n, nil",
		"calls":  "var fib func(int) int\nfib = func(n int) int { if n < 2 { return n }; return fib(n-1) + fib(n-2) }\nreturn fib(20), nil",
		"maps":   "m := map[string]int{}\nfor i := range 10000 { m[string(rune('a'+i%26))] += i }\nreturn len(m), nil",
	} {
		b.Run(name, func(b *testing.B) {
			p, r := g.Check(head + body + "\n}\n")
			if r != nil {
				b.Fatal(r.Message)
			}
			c, err := interp.Compile(p)
			if err != nil {
				b.Fatal(err)
			}
			call, err := newCall("[]")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, _, panicked := c.Run(call); panicked != nil {
					b.Fatal(panicked.Message)
				}
			}
		})
	}
}

func benchSource(b *testing.B) string {
	data, err := os.ReadFile("testdata/recorded/update_cart.go.txt")
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

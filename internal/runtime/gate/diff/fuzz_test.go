package diff

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
)

// FuzzGate feeds the gate arbitrary bytes: it must neither panic nor hang, and what it accepts must be rewritten.
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
		if _, err := rewrite.Text(p, source); err != nil {
			if _, known := errors.AsType[rewrite.Unsupported](err); !known {
				t.Fatalf("accepted, but: %v", err)
			}
		}
	})
}

// BenchmarkGate measures the gate on a program of 60 lines.
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

func benchSource(b *testing.B) string {
	data, err := os.ReadFile("testdata/recorded/update_cart.go.txt")
	if err != nil {
		b.Fatal(err)
	}
	return string(data)
}

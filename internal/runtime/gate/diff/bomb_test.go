package diff

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/interp"
)

// Programs that are legal but heavy for a compiler neither hang nor exhaust the gate: they run, or are refused.
func TestHeavyPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("rests on the processor time of the check")
	}
	repeat := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	tests := map[string]string{
		"literal":   "var m = map[string]int{\n" + repeat(3500, func(i int) string { return fmt.Sprintf("\"k%d\": %d,\n", i, i) }) + "}\n",
		"functions": repeat(1200, func(i int) string { return fmt.Sprintf("func f%d(n int) int { return n + %d }\n", i, i) }),
		"types": repeat(900, func(i int) string {
			return fmt.Sprintf("type T%d struct { a *T%d; b map[string]T%d }\n", i, (i+1)%900, (i+7)%900)
		}),
		"methods": repeat(700, func(i int) string {
			return fmt.Sprintf("type E%d int\nfunc (E%d) Error() string { return \"\" }\n", i, i)
		}),
		"errors": "var es = []error{" + repeat(700, func(i int) string { return fmt.Sprintf("E%d(1),", i) }) + "}\n" + repeat(700, func(i int) string {
			return fmt.Sprintf("type E%d int\nfunc (E%d) Error() string { return \"\" }\n", i, i)
		}),
		"generics": "type P[A, B any] struct { a *A; b *B }\ntype Q0 = P[int, string]\n" + repeat(14, func(i int) string { return fmt.Sprintf("type Q%d = P[Q%d, Q%d]\n", i+1, i, i) }) + "var q Q14\n",
		"interfaces": "type I0 interface { M0() }\n" + repeat(300, func(i int) string {
			return fmt.Sprintf("type I%d interface { I%d; interface{ I%d }; M%d() }\n", i+1, i, i, i+1)
		}),
		"unions":     "type U0 interface { ~int | ~string }\n" + repeat(25, func(i int) string { return fmt.Sprintf("type U%d interface { U%d | U%d }\n", i+1, i, i) }) + "func f[T U25](t T) {}\n",
		"nested ifs": "func f(n int) int {\n" + strings.Repeat("if n > 0 { n--\n", 140) + strings.Repeat("}\n", 140) + "return n }\n",
		"switch":     "func f(n int) int { switch n {\n" + repeat(1500, func(i int) string { return fmt.Sprintf("case %d: return %d\n", i, i*7) }) + "}\nreturn 0 }\n",
		"closures":   "var f = " + strings.Repeat("func() any { return ", 100) + "1" + strings.Repeat(" }", 100) + "\n",
		"arrays":     "var a [1 << 30]int\n",
		"frames":     "func f() { var a [500000]int\nb := a\nc := b\n_ = c }\n",
		"instances": "func g[T any](n int) { if n > 0 { g[T](n-1) } }\n" + repeat(300, func(i int) string {
			return fmt.Sprintf("type G%d int\nfunc h%d() { g[G%d](1); g[[]G%d](1) }\n", i, i, i, i)
		}),
	}
	for name, decls := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := gate.New(gate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			p, refusal := g.Check("package tool\nimport \"recurgent\"\n" + decls + "func Run(call *recurgent.Call) (any, error) { return nil, nil }\n")
			if refusal != nil {
				if strings.Contains(refusal.Message, "too long") {
					t.Error("only the deadline stopped the check")
				}
				t.Logf("refused in %v: %.100s", time.Since(start), refusal.Message)
				return
			}
			c, err := interp.Compile(p)
			t.Logf("checked and compiled in %v: %v", time.Since(start), err)
			if err == nil {
				c.Close()
			}
		})
	}
}

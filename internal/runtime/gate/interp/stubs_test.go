package interp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
)

// Stubs come back when a program is closed: more programs than there are stubs run one after the other.
func TestCloseFreesStubs(t *testing.T) {
	var methods strings.Builder
	const count = 50
	for i := range count {
		fmt.Fprintf(&methods, "func (E) M%d() {}\n", i)
	}
	for range slotCount/count/2 + 10 {
		c := compile(t, "type E struct{}\nfunc (E) Error() string { return \"e\" }\n"+methods.String(), "return nil, E{}")
		_, err, _ := c.Run(newCall(t))
		if err == nil || err.Error() != "e" {
			t.Fatal(err)
		}
		c.Close()
	}
}

// Hundreds of types with the same method have a stub each; a program with more methods than there are stubs is refused in plain words.
func TestManyMethods(t *testing.T) {
	var decls, values strings.Builder
	for i := range 600 {
		fmt.Fprintf(&decls, "type T%d int\nfunc (t T%d) String() string { return \"%d:\" + strconv.Itoa(int(t)) }\n", i, i, i)
		fmt.Fprintf(&values, "T%d(%d), ", i, i+1)
	}
	c := compile(t, decls.String(), "out := fmt.Sprint("+values.String()+")\nreturn len(out), nil")
	v, err, p := c.Run(newCall(t))
	if err != nil || p != nil {
		t.Fatal(err, p)
	}
	want := 600 - 1 // blanks between operands
	for i := range 600 {
		want += len(fmt.Sprintf("%d:%d", i, i+1))
	}
	if v != want {
		t.Errorf("got %v, want %d", v, want)
	}

	decls.Reset()
	decls.WriteString("type G[T any] struct{ v T }\n")
	for i := range 90 {
		fmt.Fprintf(&decls, "func (g G[T]) M%d() {}\n", i)
	}
	values.Reset()
	for i := range 60 {
		fmt.Fprintf(&values, "G[[%d]int]{}, ", i)
	}
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	program, r := g.Check("package tool\n" + decls.String() + "\nfunc Run(call *recurgent.Call) (any, error) {\nreturn len([]any{" + values.String() + "}), nil\n}\n")
	if r != nil {
		t.Fatal(r)
	}
	if _, err := Compile(program); err == nil || !strings.Contains(err.Error(), "more than 8192 methods") {
		t.Errorf("got %v", err)
	}
}

// The host calls methods of every signature, by value and by pointer, promoted ones too: with arguments in registers and on the stack.
func TestMethodsOfEverySignature(t *testing.T) {
	c := compile(t, `
type wide struct{ a, b, c, d, e, f, g, h, i, j, k int }
type pair struct{ n int; s string }
type big interface {
	Floats(a float64, b float32, c int8, d string, e []int, f map[string]int, g wide, h ...pair) (float64, string, wide, error)
	Grow(n int, p *pair) *pair
}
type T struct{ n int; s string }
func (t T) Floats(a float64, b float32, c int8, d string, e []int, f map[string]int, g wide, h ...pair) (float64, string, wide, error) {
	g.k += t.n + len(h) + h[1].n
	return a + float64(b) + float64(c) + float64(e[1]) + float64(f["x"]), d + t.s + h[0].s, g, errors.New(h[1].s)
}
func (t *T) Grow(n int, p *pair) *pair { t.n += n; p.n += t.n; return p }
type U struct{ *T; time.Time }
type V struct{ big }
type calls interface{ call(b big) string }
type key int
func (k key) MarshalText() ([]byte, error) { return []byte("k" + strconv.Itoa(int(k))), nil }
func (k *key) UnmarshalText(b []byte) error { n, err := strconv.Atoi(string(b[1:])); *k = key(n); return err }
type out struct{ bytes.Buffer }
type in struct{ n int }
func (i *in) Read(p []byte) (int, error) { if i.n == 0 { return 0, io.EOF }; i.n--; p[0] = 'x'; return 1, nil }
type fm struct{ n int }
func (f fm) Format(s fmt.State, verb rune) { w, ok := s.Width(); fmt.Fprint(s, "<", string(verb), w, ok, f.n, ">") }
type sc struct{ s string }
func (s *sc) Scan(st fmt.ScanState, verb rune) error { r, n, err := st.ReadRune(); s.s = fmt.Sprint(string(r), n, verb); return err }
`, `
	t := &T{n: 1, s: "t"}
	use := func(b big) any {
		f, s, w, err := b.Floats(1.5, 2.5, 3, "d", []int{1, 4}, map[string]int{"x": 5}, wide{k: 7}, pair{1, "p"}, pair{2, "q"})
		return fmt.Sprint(f, s, w.k, err, b.Grow(2, &pair{n: 1}).n)
	}
	var o out
	n, err := io.Copy(&o, &in{3})
	m := map[key]int{}
	err2 := json.Unmarshal([]byte("{\"k4\": 5}"), &m)
	raw, err3 := json.Marshal(m)
	var s sc
	_, err4 := fmt.Sscan("xyz", &s)
	u := U{T: t, Time: time.Unix(0, 0).UTC()}
	stamp, err5 := json.Marshal(u)
	return []any{use(t), use(V{t}), use(u.T), o.String(), n, err, err2, string(raw), err3, fmt.Sprintf("%5d|%v", fm{3}, []fm{{1}}), s, err4, string(stamp), err5, u.String()}, nil`)
	v, err, p := c.Run(newCall(t))
	if err != nil || p != nil {
		t.Fatal(err, p)
	}
	got := fmt.Sprint(v)
	want := `[16dtp12 q 4 16dtp14 q 6 16dtp16 q 8 xxx 3 <nil> <nil> {"k4":5} <nil> <d5 true 3>|[<v0 false 1>] {x1 118} <nil> "1970-01-01T00:00:00Z" <nil> 1970-01-01 00:00:00 +0000 UTC]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

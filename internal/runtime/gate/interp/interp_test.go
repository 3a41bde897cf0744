package interp

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

func compile(t testing.TB, decls, body string) *Compiled {
	t.Helper()
	c := compileAlone(t, decls, body)
	t.Cleanup(func() {
		if err := c.CheckTypes(); err != nil {
			t.Errorf("after the runs: %v", err)
		}
		c.Close()
	})
	return c
}

// compileAlone compiles a program that nothing holds.
func compileAlone(t testing.TB, decls, body string) *Compiled {
	t.Helper()
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, r := g.Check("package tool\n" + decls + "\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n")
	if r != nil {
		t.Fatalf("refused: %v %q", r.Message, r.Errors)
	}
	c, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newCall(t testing.TB, args ...string) *recurgent.Call {
	t.Helper()
	in := recurgent.Input{}
	for _, a := range args {
		in.Args = append(in.Args, json.RawMessage(a))
	}
	call, err := recurgent.New(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// Package variables live for one call.
func TestVariablesStartAfresh(t *testing.T) {
	c := compile(t, "var n = first()\nvar m = map[string]int{}\nfunc first() int { return 10 }", "n++\nm[\"k\"]++\nreturn []int{n, m[\"k\"]}, nil")
	for range 3 {
		v, err, p := c.Run(newCall(t))
		if fmt.Sprint(v, err, p) != "[11 1] <nil> <nil>" {
			t.Fatalf("got %v %v %+v", v, err, p)
		}
	}
}

// Clock and randomness are those of Begin; reads are noted.
func TestClockAndRandomness(t *testing.T) {
	c := compile(t, "import (\n\"time\"\n\"math/rand\"\nr2 \"math/rand/v2\"\nc \"crypto/rand\"\n\"hash/maphash\"\n)", `
	start := time.Now()
	time.Sleep(time.Minute)
	b := make([]byte, 9)
	c.Read(b)
	var h maphash.Hash
	h.WriteString("x")
	return []any{start, time.Since(start).String(), rand.Intn(1000), rand.Perm(5), r2.IntN(1000), r2.N(10*time.Second), b, c.Text(), h.Sum64(), time.Until(start) < 0}, nil`)
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	var got [3]string
	for i, seed := range []uint64{7, 7, 8} {
		c.Begin(now, seed)
		v, err, p := c.Run(newCall(t))
		if err != nil || p != nil {
			t.Fatal(err, p)
		}
		raw, err := Encode(v)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = string(raw)
		if r := c.Reads(); r.Clock != 3 || r.Randomness == 0 {
			t.Errorf("reads: %+v", r)
		}
	}
	if got[0] != got[1] {
		t.Errorf("the same seed gave\n%s\n%s", got[0], got[1])
	}
	if got[0] == got[2] || !strings.Contains(got[0], "2026-01-02T03:04:05.000000006Z") || !strings.Contains(got[0], "1m0s") {
		t.Errorf("got\n%s\n%s", got[0], got[2])
	}
}

// Time zones come with the binary; ranges over maps are sorted; nothing is printed.
func TestDeterminism(t *testing.T) {
	c := compile(t, "", `
	m := map[string]int{}
	for i := range 100 { m[fmt.Sprint(i)] = i }
	out := ""
	for k := range m { out += k + " " }
	for k := range maps.Keys(map[int]bool{3: true, 1: true, 2: false}) { out += fmt.Sprint(k) }
	fmt.Println("nowhere")
	return out, nil`)
	first, _, _ := c.Run(newCall(t))
	for range 5 {
		if v, _, _ := c.Run(newCall(t)); v != first {
			t.Fatalf("got %v and %v", first, v)
		}
	}
	if !strings.HasSuffix(first.(string), "99 123") || !strings.HasPrefix(first.(string), "0 1 10 11") {
		t.Error(first)
	}
}

func TestPanics(t *testing.T) {
	tests := []struct {
		name, decls, body string
		want              Panic
	}{
		{"runtime error", "", "var s []int\nreturn s[3], nil", Panic{Class: "runtime error", Message: "runtime error: index out of range [3] with length 0", Line: 5}},
		{"in a callee", "func f(m map[string]int) {\n\tm[\"a\"] = 1\n}", "f(nil)\nreturn nil, nil", Panic{Class: "runtime error", Message: "assignment to entry in nil map", Line: 3}},
		{"error", "import \"errors\"", "panic(errors.New(\"boom\"))", Panic{Class: "error", Message: "boom", Line: 4}},
		{"string", "", "panic(\"text\")", Panic{Class: "string", Message: "text", Line: 4}},
		{"program type", "type T struct{ A int }", "panic(T{1})", Panic{Class: "tool.T", Message: "{1}", Line: 4}},
		{"stack overflow", "func f(n int) int { return f(n+1) + 1 }", "return f(0), nil", Panic{Class: "fatal error", Message: "stack overflow", Line: 2}},
		{"not recovered", "func f() { defer func() { recover() }(); f() }", "f()\nreturn nil, nil", Panic{Class: "fatal error", Message: "stack overflow", Line: 2}},
		{"deadlock", "", "c := make(chan int)\nreturn <-c, nil", Panic{Class: "fatal error", Message: "all goroutines are asleep - deadlock!", Line: 5}},
		{"select", "", "select {}", Panic{Class: "fatal error", Message: "all goroutines are asleep - deadlock!", Line: 4}},
		{"bad error method", "type E struct{}\nfunc (E) Error() string { panic(1) }", "panic(E{})", Panic{Class: "error", Message: "a panic whose text panics", Line: 5}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := compile(t, test.decls, test.body)
			for range 2 { // the program goes on working
				v, err, p := c.Run(newCall(t))
				if p == nil {
					t.Fatalf("got %v %v", v, err)
				}
				if *p != test.want {
					t.Errorf("got %+v, want %+v", *p, test.want)
				}
			}
		})
	}
}

// Calls as deep as they may be fit the stack that the runner has, whatever form they take.
func TestDepthFitsTheStack(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(64 << 20))
	for name, decl := range map[string]string{
		"static":    "func f(n int) int { if n == 0 { return 0 }; return f(n-1) + 1 }",
		"closure":   "var f func(int) int\nfunc init2() bool { f = func(n int) int { return f(n-1) }; return true }\nvar _ = init2()",
		"deferring": "func f(n int) (r int) { defer func() { r++ }(); return f(n-1) }",
		"interface": "type I interface{ F(int) int }\ntype T struct{}\nfunc (t T) F(n int) int { return I(t).F(n-1) }\nfunc f(n int) int { return T{}.F(n) }",
		"callback":  "func f(n int) int { strings.Map(func(r rune) rune { f(n-1); return r }, \"x\"); return n }",
		"stringer":  "type S int\nfunc (s S) String() string { return fmt.Sprint(s-1) }\nfunc f(n int) int { return len(fmt.Sprint(S(n))) }",
		"deferred":  "func f(n int) int { defer f(n-1); return n }",
		"marshaler": "type M int\nfunc (m M) MarshalJSON() ([]byte, error) { return json.Marshal([]any{m-1}) }\nfunc f(n int) int { b, _ := json.Marshal(M(n)); return len(b) }",
		"decoder":   "type M struct { n *M }\nfunc (m *M) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, m) }\nfunc f(n int) int { json.Unmarshal([]byte(\"1\"), &M{}); return n }",
		"element":   "type M int\nfunc (m M) MarshalXML(e *xml.Encoder, start xml.StartElement) error { return e.EncodeElement(m-1, start) }\nfunc f(n int) int { b, _ := xml.Marshal(M(n)); return len(b) }",
		"formatter": "type M int\nfunc (m M) Format(s fmt.State, verb rune) { fmt.Fprint(s, m-1, m-2) }\nfunc f(n int) int { return len(fmt.Sprint(M(n))) }",
		"sorter":    "func f(n int) int { sort.Slice([]int{1, 2}, func(i, j int) bool { f(n-1); return i < j }); return n }",
	} {
		t.Run(name, func(t *testing.T) {
			c := compile(t, decl, "return f(1<<40), nil")
			if _, _, p := c.Run(newCall(t)); p == nil || p.Message != "stack overflow" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestDeepRecursionRuns(t *testing.T) {
	c := compile(t, "func f(n int) int { if n == 0 { return 0 }; return f(n-1) + 1 }", "return f(39000), nil")
	if v, _, p := c.Run(newCall(t)); v != 39000 {
		t.Errorf("got %v %+v", v, p)
	}
}

// Values that JSON cannot hold are errors, as natively (non_serializable_result).
func TestEncode(t *testing.T) {
	tests := []struct{ decls, body, want, err string }{
		{"type T struct{ A int; b int; C string `json:\"c,omitempty\"` }", "return []T{{1, 2, \"\"}}, nil", `[{"A":1}]`, ""},
		{"type M struct{}\nfunc (M) MarshalJSON() ([]byte, error) { return []byte(\"[1]\"), nil }", "return map[string]any{\"m\": M{}, \"p\": &M{}}, nil", `{"m":[1],"p":[1]}`, ""},
		{"", "return make(chan int), nil", "", "unsupported type: chan int"},
		{"", "return math.NaN(), nil", "", "unsupported value: NaN"},
		{"type N struct{ P *N }", "n := &N{}\nn.P = n\nreturn n, nil", "", "encountered a cycle"},
		{"type M struct{}\nfunc (M) MarshalJSON() ([]byte, error) { panic(\"no\") }", "return M{}, nil", "", "panicked: no"},
		{"", "return \"<&>\", nil", `"<&>"`, ""},
	}
	for _, test := range tests {
		c := compile(t, test.decls, test.body)
		v, err, p := c.Run(newCall(t))
		if err != nil || p != nil {
			t.Fatal(err, p)
		}
		raw, err := Encode(v)
		if string(raw) != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %s, %v", test.body, raw, err)
		}
	}
}

// A program's values survive collections in the midst of it.
func TestCollection(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	c := compile(t, `
type node struct { next *node; vals []string; m map[string]*node; f func() string; any any }
func build(n int) *node {
	if n == 0 { return nil }
	x := &node{next: build(n - 1), m: map[string]*node{}}
	for i := range 5 { x.vals = append(x.vals, strings.Repeat(fmt.Sprint(i), n%7+1)) }
	x.m["self"] = x
	s := fmt.Sprint("n", n)
	x.f = func() string { return s + x.vals[0] }
	x.any = [2]any{s, *x}
	return x
}`, `
	total := 0
	for n := build(300); n != nil; n = n.next {
		total += len(n.f()) + len(n.vals) + len(n.m["self"].vals[4]) + len(n.any.([2]any)[0].(string))
	}
	return total, nil`)
	first, _, p := c.Run(newCall(t))
	if p != nil {
		t.Fatalf("%+v", p)
	}
	for range 10 {
		runtime.GC()
		if v, _, _ := c.Run(newCall(t)); v != first {
			t.Fatalf("got %v, then %v", first, v)
		}
	}
}

// A frame that is found when its program is gone, as the collector may find one on a stack, still has its type.
func TestTypesOutliveTheirObjects(t *testing.T) {
	locals := "s := []string{}\n"
	for i := range 100 { // more than 512 bytes: such an object points to its type
		locals += fmt.Sprintf("v%d := fmt.Sprint(call.Args, %d)\ns = append(s, v%d)\n", i, i, i)
	}
	frames := make([]unsafe.Pointer, 50)
	for i := range frames {
		frames[i] = compileAlone(t, "import \"fmt\"", locals+"return s, nil").run.template
	}
	for range 10 {
		runtime.GC()
		junk := make([]*[6]uint64, 10000)
		for i := range junk {
			junk[i] = &[6]uint64{1 << 40, 1 << 40, ^uint64(0), ^uint64(0), 1, 1}
		}
		runtime.KeepAlive(junk)
	}
	runtime.KeepAlive(frames)
}

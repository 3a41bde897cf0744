package interp

import (
	"fmt"
	"slices"
	"strings"
)

// A kernel is a small program that does one thing n times; n is its argument, or, where the size of a type depends on it, the constant N.
type kernel struct {
	name, decls, body string
	sized             bool   // N stands for n
	growth            uint64 // of what it allocates, natively, when n doubles
}

// A loopForm is a way to loop, or something done in a loop, over elements of a type T, which value makes from an int.
type loopForm struct {
	name, decls, body string
	sized             bool
	keys              bool // for types that can be keys of maps
}

// An element is a type T and what value returns.
type element struct {
	name, decls, typ, value string
	comparable              bool
}

func elements() []element {
	return []element{
		{"int", "", "int", "i", true},
		{"string", "", "string", "string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26))", true},
		{"float64", "", "float64", "float64(i)", true},
		{"bool", "", "bool", "i%2 == 0", true},
		{"byte", "", "byte", "byte(i)", true},
		{"rune", "", "rune", "rune(i)", true},
		{"struct", "type pair struct { a int; s string; b bool }", "pair", "pair{i, \"x\", true}", true},
		{"array", "", "[4]int", "[4]int{i, i}", true},
		{"pointer", "type pair struct { a int; s string }", "*pair", "&pair{a: i}", false},
		{"any", "", "any", "any(i)", true},
		{"interface", "type shape interface { area() int }\ntype square int\nfunc (s square) area() int { return int(s) }", "shape", "square(i)", true},
		{"slice", "", "[]int", "[]int{i, i}", false},
		{"map", "", "map[string]int", "map[string]int{\"a\": i}", false},
		{"func", "", "func() int", "func() int { return i }", false},
		{"chan", "", "chan int", "make(chan int, 1)", false},
	}
}

func loopForms() []loopForm {
	return []loopForm{
		{name: "for cond", body: "i := 0\nfor i < n { x = value(i); i++ }"},
		{name: "for three", body: "for i := 0; i < n; i++ { x = value(i) }"},
		{name: "for ever", body: "i := 0\nfor { if i == n { break }; x = value(i); i++ }"},
		{name: "goto", body: "i := 0\nagain: x = value(i); i++\nif i < n { goto again }"},
		{name: "nested", body: "for i := 0; i < n; i++ { for j := 0; j < 8; j++ { x = value(i + j) } }"},
		{name: "labelled", body: "outer: for i := range n { for j := range 8 { if j == 3 { continue outer }; if i == n - 1 { break outer }; x = value(i) } }"},
		{name: "range int", body: "for i := range n { x = value(i) }"},
		{name: "range slice", body: "s := make([]T, n)\nfor i, v := range s { x = v; s[i] = value(i) }"},
		{name: "range slice of slices", body: "s := make([][]T, n)\nfor i := range s { s[i] = []T{value(i)} }\nfor _, t := range s { for _, v := range t { x = v } }"},
		{name: "range map", body: "m := map[int]T{}\nfor i := range n { m[i] = value(i) }\nfor _, v := range m { x = v }"},
		{name: "range chan", body: "c := make(chan T, n)\nfor i := range n { c <- value(i) }\nclose(c)\nfor v := range c { x = v }"},
		{name: "range func", decls: "func seq(n int) func(func(T) bool) { return func(yield func(T) bool) { for i := range n { if !yield(value(i)) { return } } } }",
			body: "for v := range seq(n) { x = v }"},
		{name: "range func of two", decls: "func seq(n int) func(func(int, T) bool) { return func(yield func(int, T) bool) { for i := range n { if !yield(i, value(i)) { return } } } }",
			body: "for i, v := range seq(n) { if i == n - 1 { break }; defer func() { x = v }() }"},
		{name: "iter.Pull", decls: "func seq(n int) iter.Seq[T] { return func(yield func(T) bool) { for i := range n { if !yield(value(i)) { return } } } }",
			body: "next, stop := iter.Pull(seq(n))\ndefer stop()\nfor v, ok := next(); ok; v, ok = next() { x = v }"},
		{name: "append", body: "var s []T\nfor i := range n { s = append(s, value(i)) }\nx = s[n-1]"},
		{name: "append many", body: "var s []T\nfor i := range n { s = append(s, value(i), x) }\nt := append([]T{}, s...)\nx = t[n-1]"},
		{name: "copy", body: "s, t := make([]T, n), make([]T, n)\nfor i := range s { s[i] = value(i) }\nx = t[copy(t, s) - 1]"},
		{name: "clear", body: "s := make([]T, n)\nfor i := range s { s[i] = value(i) }\nclear(s)\nx = s[0]"},
		{name: "slicing", body: "s := make([]T, n)\nfor i := 0; len(s) > 0; i++ { s[0] = value(i); x = s[0]; s = s[1:] }"},
		{name: "reverse", body: "s := make([]T, n)\nfor i := range s { s[i] = value(i) }\nfor i, j := 0, n-1; i < j; i, j = i+1, j-1 { s[i], s[j] = s[j], s[i] }\nx = s[0]"},
		{name: "queue", body: "s := []T{value(0)}\nfor i := 0; i < n; i++ { x = s[0]; s = append(s[1:], value(i), x) }"},
		{name: "list", decls: "type node struct { v T; next *node }", body: "var l *node\nfor i := range n { l = &node{value(i), l} }\nfor ; l != nil; l = l.next { x = l.v }"},
		{name: "map insert", body: "m := map[int]T{}\nfor i := range n { m[i] = value(i) }\nx = m[n-1]"},
		{name: "map of maps", body: "m := map[int]map[int]T{}\nfor i := range n { if m[i%16] == nil { m[i%16] = map[int]T{} }; m[i%16][i] = value(i) }"},
		{name: "map count", keys: true, body: "m := map[T]int{}\nfor i := range n { m[value(i)]++ }"},
		{name: "map delete", keys: true, body: "m := map[T]int{}\nfor i := range n { m[value(i)] = i }\nfor k := range m { delete(m, k); x = k }"},
		{name: "map first", keys: true, body: "m := map[T]int{}\nfor i := range n { m[value(i)] = i }\nfor range n { for k := range m { x = k; break } }"},
		{name: "map drain", keys: true, body: "m := map[T]int{}\nfor i := range n { m[value(i)] = i }\nfor len(m) > 0 { for k := range m { delete(m, k); x = k; break } }"},
		{name: "map worklist", keys: true, body: "m := map[T]int{}\nfor i := range n { m[value(i)] = i }\nfor i := range n { for k := range m { delete(m, k); x = k; break }; m[value(n + i)] = i }"},
		{name: "map nested", keys: true, body: "m := map[T]int{}\nfor i := range 64 { m[value(i)] = i }\nfor range n / 64 { for k := range m { x = k } }"},
		{name: "struct copy", decls: "type wide struct { a [16]int; v T }", body: "w := wide{}\nfor i := range n { w.v = value(i); u := w; x = u.v }"},
		{name: "closures", body: "var fs []func() T\nfor i := range n { fs = append(fs, func() T { return value(i) }) }\nfor _, f := range fs { x = f() }"},
		{name: "defer", body: "for i := range n { v := value(i); defer func() { x = v }() }"},
		{name: "method", decls: "type cell struct { v T }\nfunc (c *cell) set(v T) { c.v = v }\nfunc (c cell) get() T { return c.v }", body: "c := &cell{}\nfor i := range n { c.set(value(i)); x = c.get() }"},
		{name: "method value", decls: "type cell struct { v T }\nfunc (c *cell) set(v T) { c.v = v }", body: "c := &cell{}\nset := c.set\nfor i := range n { set(value(i)) }\nx = c.v"},
		{name: "interface method", decls: "type setter interface { set(T) }\ntype cell struct { v T }\nfunc (c *cell) set(v T) { c.v = v }", body: "c := &cell{}\nvar s setter = c\nfor i := range n { s.set(value(i)) }\nx = c.v"},
		{name: "boxes", body: "var s []any\nfor i := range n { s = append(s, value(i)) }\nfor _, a := range s { x, _ = a.(T) }"},
		{name: "type switch", body: "for i := range n { var a any = value(i); switch v := a.(type) { case nil: case T: x = v } }"},
		{name: "select", body: "c := make(chan T, 1)\nfor i := range n { select { case c <- value(i): default: x = <-c } }"},
		{name: "generic", decls: "func keep[E any](s []E, v E) []E { return append(s, v) }", body: "var s []T\nfor i := range n { s = keep(s, value(i)) }\nx = s[0]"},
		{name: "slices", body: "s := make([]T, n)\nfor i := range s { s[i] = value(i) }\nslices.Reverse(s)\nx = slices.Clone(s)[0]"},
		{name: "maps", body: "m := map[int]T{}\nfor i := range n { m[i] = value(i) }\nfor k, v := range maps.Clone(m) { if k >= 0 { x = v } }"},
		{name: "recursion", decls: "func down(n int) T { if n == 0 { return value(0) }; return down(n - 1) }", body: "x = down(n)"},
		{name: "range array", sized: true, body: "var a [N]T\nfor i, v := range a { x = v; a[i] = value(i) }"},
		{name: "range array keys", sized: true, body: "var a [N]T\nfor i := range a { a[i] = value(i) }"},
		{name: "range array pointer", sized: true, body: "a := &[N]T{}\nfor i, v := range a { x = v; a[i] = value(i) }"},
		{name: "range array field", sized: true, decls: "type big struct { a [N]T }", body: "b := &big{}\nfor i := range b.a { b.a[i] = value(i); x = b.a[i] }"},
		{name: "array of a struct", sized: true, decls: "type big struct { a [N]T; n int }", body: "var b big\nfor i := range N { b.n += len(b.a); b.a[i] = value(i); x = b.a[i] }"},
		{name: "array in a map", sized: true, body: "m := map[int]*[N]T{0: {}}\nfor i := range N { m[0][i] = value(i); x = m[0][i] }"},
		{name: "array captured", sized: true, body: "var a [N]T\nset := func(i int) { a[i] = value(i) }\nfor i := range N { set(i); x = a[i] }"},
		{name: "array and defer", sized: true, body: "var a [N]T\nfor i, v := range a { a[i] = value(i); defer func() { x = v }() }"},
		{name: "array sliced", sized: true, body: "var a [N]T\nfor i := range N { a[:][i] = value(i); x = a[i:][0] }"},
	}
}

// textKernels are those over strings.
func textKernels() []kernel {
	const head = "s := strings.Repeat(\"añ世\", n/8)\nb := []byte(s)\nk := 0\n"
	bodies := []kernel{
		{name: "range", body: "for i, r := range s { if r == 'a' { k += i } }"},
		{name: "range alone", body: "for range s { k++ }"},
		{name: "range runes", body: "for _, r := range []rune(s) { k += int(r) }"},
		{name: "range bytes", body: "for i, c := range []byte(s) { k += i + int(c) }"},
		{name: "index", body: "for i := 0; i < len(s); i++ { k += int(s[i]) }"},
		{name: "index of bytes", body: "for i := range s { k += int([]byte(s)[i]) }"},
		{name: "first byte", body: "for range n { for _, c := range []byte(s) { k += int(c); break } }"},
		{name: "substring", body: "for len(s) > 0 { k += len(s[1:]); s = s[1:] }"},
		{name: "decode", body: "for len(s) > 0 { r, w := utf8.DecodeRuneInString(s); k += int(r); s = s[w:] }"},
		{name: "compare bytes", body: "for i := range b { if string(b[:i]) == \"añ\" { k++ } }"},
		{name: "switch on bytes", body: "for i := range b { switch string(b[:i]) { case \"añ\": k++; case \"a\": k-- } }"},
		{name: "look bytes up", body: "m := map[string]int{\"a\": 1}\nfor i := range b { k += m[string(b[i:i+1])] }"},
		{name: "length of bytes", body: "for i := range b { k += len(string(b[:i])) + len([]byte(s)) }"},
		{name: "builder", body: "var w strings.Builder\nfor _, r := range s { w.WriteRune(r); k += w.Len() }\nk += len(w.String())"},
		{name: "buffer", body: "var w bytes.Buffer\nfor i := range n { w.WriteByte(byte(i)); fmt.Fprintf(&w, \"%d\", i) }\nk += w.Len()"},
		{name: "append bytes", body: "var t []byte\nfor i := range s { t = append(t, s[i]); t = append(t, \"xy\"...) }\nk = len(string(t))"},
		{name: "fields", body: "for _, f := range strings.Fields(strings.Repeat(\"ab c \", n)) { k += len(f) }"},
		{name: "split", body: "for f := range strings.SplitSeq(strings.Repeat(\"ab,c,\", n), \",\") { k += len(f) }"},
		{name: "convert runes", body: "for _, r := range s { k += len(string(r)) }"},
		{name: "concatenate", body: "t := \"\"\nfor range n { t += \"ab\" }\nk = len(t)", growth: 4},
		{name: "scan", body: "sc := bufio.NewScanner(strings.NewReader(strings.Repeat(\"ab\\nc\\n\", n)))\nfor sc.Scan() { k += len(sc.Text()) }"},
		{name: "format", body: "for i := range n { k += len(fmt.Sprintf(\"%d %s\", i, \"x\")) }"},
		{name: "regexp", body: "re := regexp.MustCompile(`[a-z]+`)\nfor _, m := range re.FindAllString(s, -1) { k += len(m) }"},
	}
	for i := range bodies {
		k := &bodies[i]
		k.name, k.body = "text/"+k.name, head+k.body+"\nreturn k, nil"
		k.growth = max(k.growth, 2)
	}
	return bodies
}

// kernels returns every form over every type that it can be over, and those over strings.
func kernels() []kernel {
	var out []kernel
	for _, f := range loopForms() {
		for _, e := range elements() {
			if f.keys && !e.comparable {
				continue
			}
			decls := []string{e.decls, "type T = " + e.typ, "func value(i int) T { return " + e.value + " }", f.decls, "func use(T) {}"}
			out = append(out, kernel{name: f.name + "/" + e.name, sized: f.sized, growth: 2,
				decls: strings.Join(slices.DeleteFunc(decls, func(s string) bool { return s == "" }), "\n"),
				body:  "var x T\n" + f.body + "\nuse(x)\nreturn n, nil"})
		}
	}
	return append(out, textKernels()...)
}

// program returns declarations and body for a size.
func (k kernel) program(n int) (decls, body string) {
	return fmt.Sprintf("const N = %d\n%s", n, k.decls), "n := N\nif len(call.Args) > 0 { n = int(call.Args[0].(float64)) }\n" + k.body
}

package generate

import (
	"fmt"
	"regexp"
	"strings"
)

// orderHelpers declares the state that statements about the order of evaluation read, and the functions that change it.
// These functions defer, which keeps the compiler from inlining them: natively, a variable that an inlined function
// literal changes may be read earlier.
const orderHelpers = `
type (
	pairø  struct{ x, y string }
	smallø struct{ a, b int16 }
	nodeø  struct {
		n    int
		b    byte
		ok   bool
		s    string
		st   pairø
		sm   smallø
		xs   []int
		fn   func(int) int
		next *nodeø
		m    map[string]int
	}
	stepperø interface{ Step(int) int }
)

func (p *nodeø) Step(k int) int {
	defer func() {}()
	p.n, p.b, p.ok, p.s = p.n+k, p.b+1, !p.ok, p.s+"n"
	p.st, p.sm, p.xs = pairø{p.s, "q"}, smallø{int16(p.n), 1}, append([]int{p.n}, p.xs[:2]...)
	p.m = map[string]int{"k": p.n, "l": 2, p.s: 3}
	return p.n
}
func (p nodeø) Value(k int) int         { return p.n*10 + k }
func (p *nodeø) Two() (int, string)     { defer func() {}(); p.Step(2); p.next = &nodeø{n: p.n, xs: p.xs, next: p}; return p.n, p.s }
func noteø(v ...any) string             { return scrubø(fmt.Sprint(v...)) }
func addø(a, b int) int                 { return a + b }
func bothø(n int, s string) int         { return n + len(s) }
func pickø[T any](a, b T, n int) T      { if n%2 == 0 { return a }; return b }
`

// orderState declares the local state of a section. step, flip and text change all of it.
const orderState = `
	a, ok, b8, s, bs := 1, true, byte(2), "k", []byte("k")
	st, sm, xs, arr := pairø{"k", "l"}, smallø{1, 2}, []int{1, 2, 3, 4}, [4]int{1, 2, 3, 4}
	m, mk := map[string]int{"k": 1, "l": 2}, map[pairø]int{{"k", "l"}: 1, {"l", "k"}: 2}
	mb, me, ms := map[byte]int{2: 1, 3: 2}, map[any]int{1: 1, "k": 2, true: 3}, map[smallø]string{{1, 2}: "a", {2, 2}: "b"}
	var e any = 1
	var p *nodeø
	var i stepperø
	f := func(k int) int { return k }
	c := make(chan int, 9999)
	set := func() {
		a, ok, b8, s, bs, st, sm = 1, true, 2, "k", []byte("k"), pairø{"k", "l"}, smallø{1, 2}
		xs, arr, e = []int{1, 2, 3, 4}, [4]int{1, 2, 3, 4}, 1
		m, mk = map[string]int{"k": 1, "l": 2}, map[pairø]int{{"k", "l"}: 1, {"l", "k"}: 2}
		mb, me, ms = map[byte]int{2: 1, 3: 2}, map[any]int{1: 1, "k": 2, true: 3}, map[smallø]string{{1, 2}: "a", {2, 2}: "b"}
		p = &nodeø{n: 1, s: "k", st: st, sm: sm, xs: []int{1, 2, 3}, fn: func(k int) int { return k + 1 }, m: map[string]int{"k": 1, "l": 2}}
		p.next, i, f, c = &nodeø{n: 5, s: "l", st: st, xs: []int{3, 2, 1}, next: p}, p, func(k int) int { return k }, make(chan int, 9999)
		c <- 1
		c <- 2
	}
	step := func(k int) int {
		defer func() {}()
		a, ok, b8, s, bs = a+k, !ok, b8+1, s+"l", append([]byte("l"), bs...)
		st, sm, xs, arr[1], e = pairø{st.y, st.x}, smallø{sm.b, sm.b}, append([]int{a}, xs[:3]...), a, fmt.Sprint(a)
		m[s], mk[st], mb[b8], me[a], ms[sm] = a, a, a, a, s
		p, f, i = p.next, func(n int) int { return n * k }, p
		p.Step(1)
		p.fn = f
		c <- k
		return a
	}
	flip := func() bool { return step(1)%2 == 0 }
	text := func() string { return strconv.Itoa(step(2)) }
	state := func() string {
		return fmt.Sprint(a, ok, b8, s, string(bs), st, sm, xs, arr, m, mk, mb, me, ms, e, len(c), p.n, p.s, p.xs, p.next.n)
	}
`

// orderForms lists the texts that may replace $x, by kind: statements (S), expressions of type int (i), string (s),
// bool (b), any (a), lists of values (v), slices of int (l), assignable ints (p), reads of maps (m), and keys (k). A
// form that starts with . contains no other forms.
var orderForms = map[byte][]string{
	'S': {
		"logø(noteø($v, $v, $v, $v))", "logø(noteø($v, $v))", "logø(noteø([]any{$v, $v}...))",
		"logø(noteø(append([]any{$v}, $v)...))",
		"$p = $i", "$p, $p = $i, $i", "$p += $i", "$p ^= $i", "$p++", "$p, s = p.Two()", "$p, ok = <-pickø(c, c, $i)",
		"a, ok = $m; e, ok = $a.(int); logø(noteø(e))", "e, ok = $a.(string); e, ok = $a.(pairø)",
		"p.n, ok = $m; p.s, p.ok = $a.(string)",
		"x, y := $i, $i; logø(noteø(x, y))", "var x, y any = $a, $v; logø(noteø(x, y))",
		"var ( x = $i; y = $i; z = $b ); logø(noteø(x, y, z))",
		"x, y, z := func() (any, int, string) { return $a, $i, $s }(); logø(noteø(x, y, z))",
		"if x, y := $i, $i; $b { logø(noteø(x, y)) } else if z := $i; z > x || $b { logø(noteø(z)) } else { logø(s) }",
		"switch x, y := $i, $i; $i%3 { case ($i)%3: logø(\"one\"); fallthrough; case 1, ($i)%3: logø(noteø(x, y)); default: logø(\"none\") }",
		"switch { case $b: logø(\"one\"); case $b, $b: logø(s); default: logø(\"none\") }",
		"switch x := e; y := pickø($a, x, $i).(type) { case int, string: logø(noteø(x, y)); case pairø: logø(y.x); default: logø(\"other\") }",
		"for x, y := 0, $i; x < 3 && ($b || x < 2); x, a = x+1, $i { if x == 1 { continue }; logø(noteø(x, y)) }",
		"for x, y := range $l { logø(noteø(x, y)) }",
		"loop: for x := range 3 { for y := 0; y < ($i)%4; y++ { if $b { continue loop }; logø(noteø(x, y)) } }",
		"select { case pickø(c, c, $i) <- $i: logø(\"sent\") }", "c <- $i; for len(c) > 0 { logø(noteø(<-c)) }",
		"func() { defer func(v ...any) { logø(noteø(v...)) }($v, $v); $p = $i }()",
		"logø(noteø(map[string]any{\"a\": $v, noteø(1, $s): $v, \"c\": $v, noteø(2, $s): $v}))",
		"logø(noteø(map[string]int{$s: $i, \"l\": $i, $s: $i, \"k\": 7}))",
		"logø(noteø(map[any]int{$k: $i, 1: $i, $k: $i}, map[pairø]bool{{$s, s}: $b, {\"k\", \"l\"}: true}))",
		"logø(noteø(struct{ x, y any; z [2]int }{y: $a, z: [2]int{$i, $i}, x: $a}, &pairø{$s, $s}))",
		"delete(mk, pairø{$s, s}); delete(m, $s); copy(xs[$i&1:], $l)",
		"x, y := p.Step, i.Step; logø(noteø(x($i), y($i), f($i)))",
	},
	'i': {
		".a", ".p.n", ".xs[a&1]", ".arr[1]", ".p.next.n", ".len(s)", ".len(p.xs)", ".m[s]", ".int(b8)", ".int(sm.b)",
		".step(1)", ".p.Step(2)", "$m", "$m",
		"$i + $i", "$i - $i", "$i * $i", "($i ^ $i)", "($i&3)<<($i&3)", "-($i)", "step($i&3)", "p.Step($i&3)",
		"p.fn($i)", "i.Step($i&3)", "f($i)", "addø($i, $i)",
		"p.Value($i)", "bothø(p.Two())", "xs[$i&3]", "arr[$i&3]", "min($i, $i)", "len($s)", "pickø($i, $i, $i)",
		"(nodeø{n: $i}).Value($i)", "len($l)", "$l[0]",
		"func(k int) int { return k + a }($i)", "7/($i|1)", "int(byte($i))", "cap(xs[:$i&1])",
	},
	'm': {".m[s]", ".mk[st]", ".mk[p.st]", ".mb[b8+1]", ".m[string(bs)]", ".m[s+\"l\"]", "m[$s]", "mk[pairø{$s, st.x}]",
		"mb[byte($i)]", "me[$k]", "p.m[$s]"},
	'k': {".a", ".s", ".!ok", ".a == 1", ".p.n", ".p.s", ".step(1)", ".text()", ".p.st", ".e"},
	's': {
		".s", ".p.s", ".st.y", ".p.st.x", ".string(bs)", ".text()", ".ms[smallø{sm.a, 2}]", ".ms[p.sm]", ".s[:a&1]",
		"$s + $s", "strconv.Itoa($i)", "noteø($v, $v)", "pickø($s, $s, $i)", "string([]byte($s))", "(pairø{$s, s}).x",
	},
	'b': {
		".ok", ".p.ok", ".!ok", ".flip()", ".e == 1", ".e == any(a)", ".st == p.st", ".sm == (smallø{1, 2})",
		".p == p.next", ".i == stepperø(p)",
		"($b && $b)", "($b || $b)", "!($b)", "($i < $i)", "($i == $i)", "($s == $s)", "((pairø{$s, s}) == st)",
		"($a == $a)",
	},
	'a': {
		".any(a)", ".any(e)", ".any(!ok)", ".any(b8+1)", ".any(p.b)", ".any(p.st)", ".any(s)", ".any(step(1))",
		".any(sm.a)", ".any(pairø{s, p.s})", ".any(p.sm)",
		"any($i)", "any($s)", "any($b)", "any(byte($i))", "any(float32(int($i)))", "any(pairø{$s, $s})",
		"any([1]int{$i})", "any([2]int{a, $i})", "any(complex(float64(int($i)), 1))", "any(struct{ x any }{$a})",
		"any(1<<($i&7))",
	},
	'v': {
		".!ok", ".b8 + 1", ".p.st", ".p.b", ".pairø{s, p.s}", ".&pairø{p.s, s}", ".mb[b8+1]", ".xs[1:3]", ".p.sm", ".e",
		".p.next == nil", ".[]byte(s)", ".ms[smallø{sm.a, 2}]", ".uint8(1<<(a&3))",
		"$i", "$i", "$s", "$b", "$a", "[]any{$v, $v}",
	},
	'l': {".xs", ".p.xs", ".xs[a&1:]", ".arr[:]", "append(xs[:1], $i, $i)", "[]int{$i, $i}", "pickø(xs, p.xs, $i)",
		"append([]int{a}, xs[$i&1:]...)"},
	'p': {".a", ".p.n", ".p.next.n", ".mk[p.st]", ".mb[b8+1]", ".p.next.next.n", "xs[$i&3]", "arr[$i&3]", "p.xs[$i&1]",
		"m[$s]", "p.m[$s]", "mk[pairø{$s, s}]", "me[$k]"},
}

var orderPart = regexp.MustCompile(`\$[a-zA-Z]`)

// order writes statements that both call and read, with calls and reads in every position of an expression.
func (g *gen) order() string {
	var b strings.Builder
	b.WriteString(orderState)
	for range 7 + g.IntN(6) {
		fmt.Fprintf(&b, "\tset()\n\ttryø(\"order\", func() {\n\t\t%s\n\t})\n\tlogø(state())\n",
			g.ordered('S', 2+g.IntN(2)))
	}
	b.WriteString("\t_, _, _ = flip, text, i\n")
	return b.String()
}

// ordered writes a random form of a kind, nested at most depth levels.
func (g *gen) ordered(kind byte, depth int) string {
	form := pick(g, orderForms[kind]...)
	for depth <= 0 && form[0] != '.' {
		form = pick(g, orderForms[kind]...)
	}
	return orderPart.ReplaceAllStringFunc(strings.TrimPrefix(form, "."),
		func(part string) string { return g.ordered(part[1], depth-1) })
}

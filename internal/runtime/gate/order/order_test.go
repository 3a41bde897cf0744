package order

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/goversion"
)

// declarations are used by the rows of the tables. Any call may change package variables.
const declarations = `package tool

import "lib"

type pair struct{ a, b string }
type word struct{ n int }
type text struct{ s string }
type short struct{ a, b int8 }
type base struct{ n int }
type named interface{ name() string }
type node struct {
	*base
	n    int
	ok   bool
	b    byte
	kid  *node
	kids []node
	next func(int) int
	s    string
	bs   []byte
	pr   pair
}

func (n node) value(int) int    { return n.n }
func (n *node) pointer(int) int { return n.n }
func (b base) name() string     { return "" }

var (
	p    *node
	i, j int
	ok   bool
	b    byte
	h    int16
	str  string
	sh   short
	wo   word
	te   text
	pr   pair
	arr  [3]int
	s    []int
	bs   []byte
	rs   []rune
	ss   []string
	nm   named
	m    map[string]int
	mb   map[byte]int
	mi   map[int]int
	mt   map[text]int
	ma   map[any]int
	mok  map[string]bool
	mpr  map[string]pair
	mst  map[string]string
	mh   map[string]int16
	mbig map[int][200]byte
	x, y any
	c    chan int
	fn   func(int) int
	_    lib.T
)

func ints2(...int) []int { return nil }
func i2f() float64 { return 0 }
func (n *node) saves() { recover() }
func (n *node) take(a, b int) {}
func (n *node) pairOf(a int) (int, int) { return 0, 0 }
func f() int           { return 0 }
func (n *node) chanOf() chan int { return nil }
func (n *node) any(a, b int) any { return nil }
func (n *node) ch(a int) chan int { return nil }
func g() bool          { return true }
func o() any           { return nil }
func t() string        { return "" }
func q() *node         { return nil }
func v() node          { return node{} }
func two() (int, int)  { return 0, 0 }
func show(...any)      {}
func ints(...int)      {}
func take(...pair)     {}
func none[T any](a T, n int) {}
`

// A program of another package has calls that reach nothing of this one's.
const library = `package lib
type T struct{}
type hidden int
func F(int) int { return 0 }
func G([]int) int { return 0 }
func H() hidden { return 0 }
var V []hidden
`

type importing struct{ lib *types.Package }

func (i importing) Import(path string) (*types.Package, error) {
	if path != "lib" {
		return nil, errors.New("no package " + path)
	}
	return i.lib, nil
}

// A program is a checked file.
type program struct {
	fset   *token.FileSet
	file   *ast.File
	info   *types.Info
	pkg    *types.Package
	source string
}

func checked(t *testing.T, source string) program {
	t.Helper()
	p := program{fset: token.NewFileSet(), source: source, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{},
	}}
	parse := func(name, text string) *ast.File {
		file, err := parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		return file
	}
	lib, err := new(types.Config).Check("lib", p.fset, []*ast.File{parse("lib.go", library)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.file = parse("main.go", source)
	conf := types.Config{Importer: importing{lib}, Error: func(err error) {
		if !strings.Contains(err.Error(), "declared and not used") {
			t.Errorf("%v", err)
		}
	}}
	p.pkg, _ = conf.Check("tool", p.fset, []*ast.File{p.file}, p.info)
	return p
}

// reordered returns the row's own declarations, rewritten, on one line.
func reordered(t *testing.T, own string) (text string, changed bool) {
	t.Helper()
	p := checked(t, declarations+own)
	changed, failure := Apply(p.file, p.info, p.pkg, p.source)
	if failure != nil {
		at, _, _ := strings.Cut(p.source[p.fset.Position(failure.Pos).Offset:], " ")
		return "refused at " + at, true
	}
	var whole strings.Builder
	var out bytes.Buffer
	for i, d := range p.file.Decls {
		out.Reset()
		if err := printer.Fprint(&out, token.NewFileSet(), d); err != nil {
			t.Fatal(err)
		}
		whole.WriteString("\n" + out.String() + "\n")
		if i == len(p.file.Decls)-1 {
			text = out.String()
		}
	}
	checked(t, "package tool\n"+whole.String())
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	text = strings.Join(lines, "; ")
	return strings.NewReplacer("{; ", "{ ", "; }", " }", ":; ", ": ").Replace(text), changed
}

// A row is the text of a function's body, or of a whole declaration, and its rewritten form. An empty want means no change.
type row struct{ rule, in, want string }

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.rule, func(t *testing.T) {
			own, whole := strings.CutPrefix(r.in, "package ")
			isBody := !whole && !strings.HasPrefix(own, "func run")
			if isBody {
				own = "func run() { " + own + " }"
			}
			got, changed := reordered(t, own)
			if isBody {
				got = strings.TrimSuffix(strings.TrimPrefix(got, "func run() { "), " }")
			}
			if changed != (r.want != "") || changed && got != r.want {
				t.Errorf("%s becomes\n%s\nwant\n%s", r.in, got, r.want)
			}
		})
	}
}

func TestStatements(t *testing.T) {
	run(t, []row{
		{"an assignment of several", "a, b := p.n, f(); _, _ = a, b",
			"moved_1 := f(); a, b := p.n, moved_1; _, _ = a, b"},
		{"names that are assigned to are not read", "i = f()", ""},
		{"what is assigned to is read after calls on the right", "s[i] = f()",
			"moved_1 := f(); s[i] = moved_1"},
		{"calls on the left come first", "s[f()], s[i] = f(), 1",
			"moved_1 := f(); moved_2 := f(); s[moved_1], s[i] = moved_2, 1"},
		{"an operation with assignment reads its variable", "p.n += f()",
			"moved_1 := f(); p.n += moved_1"},
		{"an operation with assignment to a name", "i += f()",
			"moved_1 := f(); i += moved_1"},
		{"results assigned to places", "s[i], m[str] = two()",
			"moved_1, moved_2 := two(); s[i], m[str] = moved_1, moved_2"},
		{"results assigned to names", "i, j = two()", ""},
		{"the second result is a boolean of any type", "type flag bool; fs := []flag{true}; k := &i; s[f()], fs[*k] = <-c",
			"type flag bool; fs := []flag{true}; k := &i; moved_1 := f(); moved_2, moved_3 := <-c; s[moved_1], fs[*k] = moved_2, (flag)(moved_3)"},
		{"a step of a place", "s[f()+i]++",
			"moved_1 := f(); s[moved_1+i]++"},
		{"an expression", "show(p.n, f())",
			"moved_1 := f(); show(p.n, moved_1)"},
		{"a plain local variable is not read by calls", "n := 1; show(n, f())", ""},
		{"a local variable that a function changes", "n := 1; k := func() int { n++; return n }; ints(n, k())",
			"n := 1; k := func() int { n++; return n }; moved_1 := k(); ints(n, moved_1)"},
		{"a local variable whose address is taken", "n := 1; k := &n; ints(n, f(), *k)",
			"n := 1; k := &n; moved_1 := f(); ints(n, moved_1, *k)"},
		{"a local array that is sliced", "n := [2]int{}; k := n[:]; ints(n[0], f(), k[0])",
			"n := [2]int{}; k := n[:]; moved_1 := f(); ints(n[0], moved_1, k[0])"},
		{"a local variable of a method value", "n := node{}; k := n.pointer; ints(n.n, f(), k(1))",
			"n := node{}; k := n.pointer; moved_1 := f(); moved_2 := k(1); ints(n.n, moved_1, moved_2)"},
		{"results", "func run() (int, int) { return p.n, f() }",
			"func run() (int, int) { moved_1 := f(); return p.n, moved_1 }"},
		{"results that become interfaces", "func run() (any, int) { return mok[str], f() }",
			"func run() (any, int) { moved_1 := mok[str]; moved_2 := f(); return moved_1, moved_2 }"},
		{"results of a literal", "func run() { _ = func() (any, int) { return mok[str], f() } }",
			"func run() { _ = func() (any, int) { moved_1 := mok[str]; moved_2 := f(); return moved_1, moved_2 } }"},
		{"a deferred call", "defer ints(i, f())",
			"moved_1 := f(); defer ints(i, moved_1)"},
		{"a send", "c <- i + f()",
			"moved_1 := f(); c <- i + moved_1"},
		{"a send of an interface", "k := make(chan any); k <- [2]any{mok[str], f()}; k <- mok[[2]string{str, t()}[0]]",
			"k := make(chan any); moved_1 := mok[str]; moved_2 := f(); moved_3 := [2]any{moved_1, moved_2}; k <- moved_3; moved_4 := t(); moved_5 := mok[[2]string{str, moved_4}[0]]; k <- moved_5"},
		{"the channel of a send", "p.chanOf() <- f() + i",
			"moved_1 := p.chanOf(); moved_2 := f(); moved_1 <- moved_2 + i"},
		{"a declaration of variables", "var a, b = p.n, f(); _, _ = a, b",
			"moved_1 := f(); var a, b = p.n, moved_1; _, _ = a, b"},
		{"declarations before one that moves", "var (\na = 1\nb, d = a + p.n, f()\ne = 2\n); ints(a, b, d, e)",
			"var (; a = 1; ); moved_1 := f(); var (; b, d = a + p.n, moved_1; e = 2; ); ints(a, b, d, e)"},
		{"a declaration of constants", "const a = 1; show(a)", ""},
		{"a goto jumps over no variable", "goto end; ints(i, f()); end: show()",
			"goto end; { moved_1 := f(); ints(i, moved_1) }; end: show()"},
	})
}

func TestFlow(t *testing.T) {
	run(t, []row{
		{"the condition of an if", "if p.n < f() { show() }",
			"moved_1 := f(); if p.n < moved_1 { show() }"},
		{"the initial statement of an if", "if k := p.n + f(); k < f()+i { show() }",
			"{ moved_1 := f(); k := p.n + moved_1; moved_2 := f(); if k < moved_2+i { show() } }"},
		{"an initial statement alone", "if a, b := p.n, f(); a < b { show() }",
			"moved_1 := f(); if a, b := p.n, moved_1; a < b { show() }"},
		{"an else if", "if g() { show() } else if p.n < f() { show(1) }",
			"if g() { show() } else { moved_1 := f(); if p.n < moved_1 { show(1) } }"},
		{"the tag of a switch", "switch p.n + f() { case 1: show() }",
			"moved_1 := f(); switch p.n + moved_1 { case 1: show() }"},
		{"a case of a switch", "switch k := f(); k { case 1, f()+i: show(); case 3: show(3); default: show(4) }",
			"{ k := f(); moved_1 := k; moved_2 := 0; if moved_1 == (1) { moved_2 = 1 } else { moved_3 := f(); if moved_1 == (moved_3 + i) { moved_2 = 1 } else { if moved_1 == (3) { moved_2 = 2 } else { } } }; switch moved_2 { case 1: show(); case 2: show(3); default: show(4) } }"},
		{"a case without a tag", "switch { case p.n < f(): show(); case g(): show(1) }",
			"{ moved_1 := 0; moved_2 := f(); if p.n < moved_2 { moved_1 = 1 } else { if g() { moved_1 = 2 } else { } }; switch moved_1 { case 1: show(); case 2: show(1) } }"},
		{"a case that becomes an interface", "switch x { case v().pr, mok[str], f()+i: show() }",
			"{ moved_1 := x; moved_2 := 0; moved_3 := v(); if moved_1 == (moved_3.pr) { moved_2 = 1 } else { moved_4 := mok[str]; if moved_1 == (moved_4) { moved_2 = 1 } else { moved_5 := f(); if moved_1 == (moved_5 + i) { moved_2 = 1 } else { } } }; switch moved_2 { case 1: show() } }"},
		{"the body of a case", "switch i { case 1: ints(i, f()) }",
			"switch i { case 1: moved_1 := f(); ints(i, moved_1) }"},
		{"a type switch", "switch k := [2]any{x, f()}[i].(type) { case int: show(k) }",
			"moved_1 := f(); switch k := [2]any{x, moved_1}[i].(type) { case int: show(k) }"},
		{"a type switch without a name", "switch k := f(); p.any(i, f()).(type) { case int: show(k) }",
			"{ k := f(); moved_1 := f(); switch p.any(i, moved_1).(type) { case int: show(k) } }"},
		{"a range", "for range p.n + f() { show() }",
			"moved_1 := f(); for range p.n + moved_1 { show() }"},
		{"the condition of a loop", "for a := p.n + f(); a < f()+i; a++ { show() }",
			"moved_1 := f(); for a := p.n + moved_1; ; a++ { moved_2 := f(); if !(a < moved_2+i) { break }; { show() } }"},
		{"the post statement of a loop", "for a := 0; a < 3; a += f() + i { show() }",
			"for a := 0; a < 3; func() { moved_1 := f(); a += moved_1 + i }() { show() }"},
		{"a post statement that is in order", "for ; i < 3; x = recover() { show() }", ""},
		{"a select", "select { case c <- i + f(): show(); case <-p.ch(i): }",
			"moved_1 := c; moved_2 := f(); moved_3 := i + moved_2; moved_4 := p.ch(i); select { case moved_1 <- moved_3: show(); case <-moved_4: }"},
		{"a select in order", "select { case c <- i: show(); case <-c: }", ""},
		{"the body of a select's case", "select { case <-c: ints(i, f()) }",
			"select { case <-c: moved_1 := f(); ints(i, moved_1) }"},
		{"a label for break", "loop: for i < f() { break loop }",
			"loop: for { moved_1 := f(); if !(i < moved_1) { break }; { break loop } }"},
		{"a label of a scoped switch", "out: switch k := i + f(); k + f() + i { case 1: break out }",
			"{ moved_1 := f(); k := i + moved_1; moved_2 := f(); out: switch k + moved_2 + i { case 1: break out } }"},
		{"a label for goto", "again: ints(i, f()); goto again",
			"again: ;; { moved_1 := f(); ints(i, moved_1) }; goto again"},
		{"a label for both", "again: for i < 3 + f() { break again }; goto again",
			"again: for { moved_1 := f(); if !(i < 3+moved_1) { break }; { break again } }; goto again"},
		{"a label for both with moves ahead", "again: switch i + f() { case 1: break again }; goto again",
			"moved_2: ;; { moved_1 := f(); again: switch i + moved_1 { case 1: break again } }; goto moved_2"},
	})
}

func TestExpressions(t *testing.T) {
	run(t, []row{
		{"parentheses", "ints((i), (f()))",
			"moved_1 := (f()); ints((i), moved_1)"},
		{"an address of a literal", "show(&node{n: i, b: byte(f())})",
			"moved_1 := f(); moved_2 := &node{n: i, b: byte(moved_1)}; show(moved_2)"},
		{"a receive", "ints(i, <-c)",
			"moved_1 := <-c; ints(i, moved_1)"},
		{"a negation", "ints(i, -f())",
			"moved_1 := f(); ints(i, -moved_1)"},
		{"a sum", "ints(i + f())",
			"moved_1 := f(); ints(i + moved_1)"},
		{"a comparison with an interface", "show(x == mpr[str], i == f(), mpr[str] == x)",
			"moved_1 := mpr[str]; moved_2 := x == moved_1; moved_3 := f(); moved_4 := i == moved_3; moved_5 := mpr[str]; moved_6 := moved_5 == x; show(moved_2, moved_4, moved_6)"},
		{"a comparison of structs", "show(mpr[str] == mpr[t()], v().pr == pr)",
			"moved_1 := t(); moved_2 := mpr[str]; moved_3 := mpr[moved_1]; moved_4 := moved_2 == moved_3; moved_5 := v(); moved_6 := moved_5.pr == pr; show(moved_4, moved_6)"},
		{"a comparison of words", "show(m[str] == f())",
			"moved_1 := f(); moved_2 := m[str] == moved_1; show(moved_2)"},
		{"and is evaluated ahead", "show(i, ok && g())",
			"moved_2 := ok; if moved_2 { moved_1 := g(); moved_2 = moved_1 }; show(i, moved_2)"},
		{"the right side of and moves", "show(i, g() && i < f())",
			"moved_1 := g(); moved_3 := moved_1; if moved_3 { moved_2 := f(); moved_3 = i < moved_2 }; show(i, moved_3)"},
		{"the right side of or moves", "show(i, g() || i < f())",
			"moved_1 := g(); moved_3 := moved_1; if !(moved_3) { moved_2 := f(); moved_3 = i < moved_2 }; show(i, moved_3)"},
		{"both sides by themselves", "show(i > 0 && g())", ""},
		{"a pointer", "show(*p, q().n, f())",
			"moved_1 := q(); moved_2 := f(); show(*p, moved_1.n, moved_2)"},
		{"the pointer of a target", "show(*q(), i)",
			"moved_1 := q(); show(*moved_1, i)"},
		{"a name of another package", "ints(i, lib.F(1))", ""},
		{"a call that may reach what the program has", "ints(i, lib.G(s))",
			"moved_1 := lib.G(s); ints(i, moved_1)"},
		{"a method", "ints(i, p.pointer(1), p.value(2))",
			"moved_1 := p.pointer(1); moved_2 := p.value(2); ints(i, moved_1, moved_2)"},
		{"an argument of a call that moves", "ints(i, fn(i+f()))",
			"moved_1 := f(); moved_2 := fn(i + moved_1); ints(i, moved_2)"},
		{"an element", "ints(s[i], arr[f()])",
			"moved_1 := f(); ints(s[i], arr[moved_1])"},
		{"an element of a map", "ints(m[str], m[t()], f())",
			"moved_1 := t(); moved_2 := f(); ints(m[str], m[moved_1], moved_2)"},
		{"an instance", "none[int](i, f())",
			"moved_1 := f(); none[int](i, moved_1)"},
		{"a key of bytes", "ints(i, m[string(bs)], f())",
			"moved_1 := m[string(bs)]; moved_2 := f(); ints(i, moved_1, moved_2)"},
		{"a key of an array of bytes", "show(i, map[[1]string]int{}[[1]string{string(bs)}], f())",
			"moved_1 := [1]string{string(bs)}; moved_2 := map[[1]string]int{}[moved_1]; moved_3 := f(); show(i, moved_2, moved_3)"},
		{"a key by value", "ints(mi[m[str]], f())",
			"moved_1 := f(); ints(mi[m[str]], moved_1)"},
		{"a key by address", "show(mb[q().b], f())",
			"moved_1 := q(); moved_2 := f(); show(mb[moved_1.b], moved_2)"},
		{"a key by address that has none", "show(map[pair]int{}[mpr[str]], f())",
			"moved_1 := mpr[str]; moved_2 := f(); show(map[pair]int{}[moved_1], moved_2)"},
		{"a key of one string is copied", "show(mt[te], f())",
			"moved_1 := te; moved_2 := f(); show(mt[moved_1], moved_2)"},
		{"a key in an interface is copied", "show(ma[i], f())",
			"moved_1 := i; moved_2 := f(); show(ma[moved_1], moved_2)"},
		{"a constant key in an interface", "show(ma[1], i, f())",
			"moved_1 := f(); show(ma[1], i, moved_1)"},
		{"an interface as a key", "show(ma[x], f())",
			"moved_1 := f(); show(ma[x], moved_1)"},
		{"large elements", "show(mbig[m[str]][0], mbig[mi[1]][1], f())",
			"moved_1 := m[str]; moved_2 := mbig[moved_1][0]; moved_3 := mi[1]; moved_4 := mbig[moved_3][1]; moved_5 := f(); show(moved_2, moved_4, moved_5)"},
		{"a slice", "show(s[i:], f(), i)",
			"moved_1 := s[i:]; moved_2 := f(); show(moved_1, moved_2, i)"},
		{"a slice of operands", "show(s[i:f()], i)",
			"moved_1 := f(); moved_2 := s[i:moved_1]; show(moved_2, i)"},
		{"an assertion of a word", "show(x.(int), f())", ""},
		{"an assertion of a pointer", "show(x.(*node), f())",
			"moved_1 := x.(*node); moved_2 := f(); show(moved_1, moved_2)"},
		{"an assertion of a struct with a pointer", "show(x.(struct{ p *node }), x.([1]func()), x.(chan int), x.(map[int]int), f())",
			"moved_1 := x.(struct{ p *node }); moved_2 := x.([1]func()); moved_3 := x.(chan int); moved_4 := x.(map[int]int); moved_5 := f(); show(moved_1, moved_2, moved_3, moved_4, moved_5)"},
		{"an assertion of a type parameter", "func run[T any](a T) { show(x.(T), x.([]T), f()) }",
			"func run[T any](a T) { moved_1 := f(); show(x.(T), x.([]T), moved_1) }"},
		{"a conversion to bytes", "show(i, []byte(str), f())",
			"moved_1 := []byte(str); moved_2 := f(); show(i, moved_1, moved_2)"},
		{"a conversion to text", "show(i, string(bs), f())",
			"moved_1 := f(); show(i, string(bs), moved_1)"},
		{"a conversion to an interface", "show(any(mok[str]), f())",
			"moved_1 := mok[str]; moved_2 := f(); show(any(moved_1), moved_2)"},
		{"a conversion of numbers", "show(int8(i), f())",
			"moved_1 := int8(i); moved_2 := f(); show(moved_1, moved_2)"},
		{"a conversion of a slice", "show([2]int(s), f())",
			"moved_1 := [2]int(s); moved_2 := f(); show(moved_1, moved_2)"},
		{"a nil interface fails when it is called", "show(nm.name(), i)",
			"moved_1 := nm.name(); show(moved_1, i)"},
		{"an interface of which a method is taken", "show(nm.name, f())",
			"moved_1 := nm.name; moved_2 := f(); show(moved_1, moved_2)"},
		{"a method value that copies its target", "show(p.value, f())",
			"moved_1 := p.value; moved_2 := f(); show(moved_1, moved_2)"},
		{"a method value of a pointer", "k := p; show(k.pointer, f())",
			"k := p; moved_1 := k.pointer; moved_2 := f(); show(moved_1, moved_2)"},
		{"an embedded method", "k := p; show(k.name, f())",
			"k := p; moved_1 := k.name; moved_2 := f(); show(moved_1, moved_2)"},
		{"a shift", "k := 1; show(1 << k, f())",
			"k := 1; moved_1 := f(); show(1<<k, moved_1)"},
		{"a shift by a constant", "k := 1; show(k << 1, f())", ""},
		{"a division", "k := 1; show(1 / k, f())",
			"k := 1; moved_1 := f(); show(1/k, moved_1)"},
		{"a division by a constant", "k := 1; show(k / 2, f())", ""},
		{"a comparison that may fail", "var a, b any; show(a == b, f())",
			"var a, b any; moved_1 := a == b; moved_2 := f(); show(moved_1, moved_2)"},
		{"a comparison of arrays", "var a, b [1]any; show(a == b, f())",
			"var a, b [1]any; moved_1 := a == b; moved_2 := f(); show(moved_1, moved_2)"},
		{"a field", "k := node{}; show(k.n, f())", ""},
		{"an operand of a function", "func run(n int) { show(n, func() int { return i }()) }", ""},
		{"results of a call", "show(two()); ints(two())", ""},
		{"results of a call of a changed function", "fn := func(...int) {}; k := &fn; (*k)(two())",
			"fn := func(...int) { }; k := &fn; moved_1, moved_2 := two(); (*k)(moved_1, moved_2)"},
		{"results of a method of a changed variable", "p.kids[i].next(f()); p.take(p.pairOf(i))",
			"moved_1 := f(); p.kids[i].next(moved_1); moved_2, moved_3 := p.pairOf(i); p.take(moved_2, moved_3)"},
	})
}

func TestBuiltins(t *testing.T) {
	run(t, []row{
		{"len of a slice", "show(len(s), f())", ""},
		{"len of an array with a call", "show(i, len([2]int{f()}), len(&[1]int{f()}))",
			"moved_1 := len([2]int{f()}); moved_2 := len(&[1]int{f()}); show(i, moved_1, moved_2)"},
		{"len of runes", "show(i, len([]rune(t())), len([]rune(str)))",
			"moved_1 := t(); moved_2 := len([]rune(moved_1)); moved_3 := len([]rune(str)); show(i, moved_2, moved_3)"},
		{"append", "s = append(s, i, f())",
			"moved_1 := f(); s = append(s, i, moved_1)"},
		{"append of interfaces", "var k []any; k = append(k, mok[str], f())",
			"var k []any; moved_1 := mok[str]; moved_2 := f(); k = append(k, moved_1, moved_2)"},
		{"append of a whole slice", "bs = append(bs, []byte(str + t())...)",
			"moved_1 := t(); moved_2 := []byte(str + moved_1); bs = append(bs, moved_2...)"},
		{"copy", "ints(i, copy(s, ints2(f(), i)))",
			"moved_1 := f(); moved_2 := ints2(moved_1, i); moved_3 := copy(s, moved_2); ints(i, moved_3)"},
		{"delete", "delete(mt, te); delete(m, str + t())",
			"delete(mt, te); moved_1 := t(); delete(m, str+moved_1)"},
		{"delete of a copied key", "delete(mt, map[string]text{}[t()])",
			"moved_1 := t(); moved_2 := map[string]text{}[moved_1]; delete(mt, moved_2)"},
		{"panic", "panic(mpr[t()])",
			"moved_1 := t(); moved_2 := mpr[moved_1]; panic(moved_2)"},
		{"panic of what has an address", "panic(q().ok)",
			"moved_1 := q(); panic(moved_1.ok)"},
		{"min", "ints(i, min(f(), i))",
			"moved_1 := f(); var moved_2 int = min(moved_1, i); ints(i, moved_2)"},
		{"recover", "show(i, recover())",
			"moved_1 := recover(); show(i, moved_1)"},
		{"complex of constants", "show(complex(i2f(), 1), real(1i), f())", ""},
	})
}

// Values without an address are copied early if the compiler converts them to an interface by address.
func TestInterfaces(t *testing.T) {
	run(t, []row{
		{"a byte", "show(map[int]byte{}[i], f())",
			"moved_1 := map[int]byte{}[i]; moved_2 := f(); show(moved_1, moved_2)"},
		{"two bytes", "show(mh[str], f())",
			"moved_1 := f(); show(mh[str], moved_1)"},
		{"a word", "show(m[str], f())",
			"moved_1 := f(); show(m[str], moved_1)"},
		{"half a word", "show(map[int]float32{}[i], f())",
			"moved_1 := f(); show(map[int]float32{}[i], moved_1)"},
		{"a string", "show(mst[str], f())",
			"moved_1 := f(); show(mst[str], moved_1)"},
		{"a slice", "show(map[int][]int{}[i], f())",
			"moved_1 := f(); show(map[int][]int{}[i], moved_1)"},
		{"a struct of a string", "show(map[int]text{}[i], f())",
			"moved_1 := f(); show(map[int]text{}[i], moved_1)"},
		{"an array of a slice", "show(map[int][1][]int{}[i], f())",
			"moved_1 := f(); show(map[int][1][]int{}[i], moved_1)"},
		{"two strings", "show(mpr[str], f())",
			"moved_1 := mpr[str]; moved_2 := f(); show(moved_1, moved_2)"},
		{"two bytes in a struct", "show(map[int]short{}[i], f())",
			"moved_1 := map[int]short{}[i]; moved_2 := f(); show(moved_1, moved_2)"},
		{"a pointer", "show(map[int]*node{}[i], f())",
			"moved_1 := map[int]*node{}[i]; moved_2 := f(); show(moved_1, moved_2)"},
		{"an interface", "show(map[int]any{}[i], f())",
			"moved_1 := f(); show(map[int]any{}[i], moved_1)"},
		{"a variable", "show(pr, ok, f())",
			"moved_1 := f(); show(pr, ok, moved_1)"},
		{"an element", "show(arr, v().kids[i].ok, f())",
			"moved_1 := v(); moved_2 := f(); show(arr, moved_1.kids[i].ok, moved_2)"},
		{"a byte of a string", "show(str[i], f())",
			"moved_1 := str[i]; moved_2 := f(); show(moved_1, moved_2)"},
		{"a byte of a slice", "show(bs[i], f())",
			"moved_1 := f(); show(bs[i], moved_1)"},
		{"an element of an array without an address", "show(v().pr.a, [2]bool{}[i], f())",
			"moved_1 := v(); moved_2 := [2]bool{}[i]; moved_3 := f(); show(moved_1.pr.a, moved_2, moved_3)"},
		{"a field of a target", "show(p.pr, *p, p.base.n, f())",
			"moved_1 := f(); show(p.pr, *p, p.base.n, moved_1)"},
		{"a constant", `show(true, pair{"a", "b"}, f(), i)`,
			`moved_1 := f(); show(true, pair{"a", "b"}, moved_1, i)`},
		{"a struct that reads nothing", "k := 1; show([2]int{k}, i, f())",
			"k := 1; moved_1 := f(); show([2]int{k}, i, moved_1)"},
		{"a comparison", "show(i < j, f())",
			"moved_1 := i < j; moved_2 := f(); show(moved_1, moved_2)"},
		{"a type parameter", "func run[T any](k map[int]T) { show(k[i], f()) }",
			"func run[T any](k map[int]T) { moved_1 := f(); show(k[i], moved_1) }"},
		{"a variadic parameter of structs", "take(mpr[str], mpr[t()])",
			"moved_1 := t(); take(mpr[str], mpr[moved_1])"},
	})
}

func TestLiterals(t *testing.T) {
	run(t, []row{
		{"a struct", "show(node{n: i, b: byte(f())})",
			"moved_1 := f(); moved_2 := node{n: i, b: byte(moved_1)}; show(moved_2)"},
		{"a struct in order", "_ = pair{str, t()}",
			"moved_1 := t(); _ = pair{str, moved_1}"},
		{"an interface in a struct", "_ = struct{ a any; n int }{mok[str], f()}",
			"moved_1 := mok[str]; moved_2 := f(); _ = struct { a any; n int }{moved_1, moved_2}"},
		{"an interface in an array", "_ = [...]any{1: mok[str], 0: f()}",
			"moved_1 := mok[str]; moved_2 := f(); _ = [...]any{1: moved_1, 0: moved_2}"},
		{"an interface in a slice", "_ = []any{mok[str], f()}",
			"moved_1 := mok[str]; moved_2 := f(); _ = []any{moved_1, moved_2}"},
		{"pointers left out", "_ = []*node{{n: i}, {n: f()}}",
			"moved_1 := f(); _ = []*node{{n: i}, {n: moved_1}}"},
		{"constant entries first", `_ = map[string]int{str: 1, "a": 2, "b": i}`,
			`_ = map[string]int{"a": 2, str: 1, "b": i}`},
		{"constant structs first", `_ = map[pair]text{{str, ""}: {}, {"a", "b"}: {"c"}}`,
			`_ = map[pair]text{{"a", "b"}: {"c"}, {str, ""}: {}}`},
		{"a constant in an interface is not laid out", `_ = map[string]any{str: 1, "a": 2}`, ""},
		{"a nil interface is laid out", `_ = map[string]any{str: 1, "a": nil}`,
			`_ = map[string]any{"a": nil, str: 1}`},
		{"a constant map", `show(map[string]int{"a": 1}, i, f())`,
			`moved_1 := f(); show(map[string]int{"a": 1}, i, moved_1)`},
		{"entries one by one", `_ = map[string]int{"a": 1, str: i, t(): f()}`,
			`moved_1 := map[string]int{"a": 1}; moved_1[str] = i; moved_2 := t(); moved_3 := f(); moved_1[moved_2] = moved_3; _ = moved_1`},
		{"types of entries", "_ = map[pair]*pair{{str, t()}: {t(), str}}",
			"moved_1 := map[pair]*pair{}; moved_2 := t(); moved_3 := pair{str, moved_2}; moved_4 := t(); moved_1[moved_3] = &pair{moved_4, str}; _ = moved_1"},
		{"entries without a name for their type", "_ = map[string]any{str: lib.H(), t(): i}",
			"moved_1 := map[string]any{}; moved_2 := lib.H(); moved_1[str] = moved_2; moved_3 := t(); moved_1[moved_3] = i; _ = moved_1"},
	})
}

func TestTypeNames(t *testing.T) {
	run(t, []row{
		{"a comparison has a type of its own", "type flag bool; k := func(flag, int) {}; k(i < f() && i < j, f())",
			"type flag bool; k := func(flag, int) { }; moved_1 := f(); var moved_2 flag = i < moved_1 && i < j; moved_3 := f(); k(moved_2, moved_3)"},
		{"a constant that is shifted", "var a uint8 = 1 << i; show(a, min(uint8(f()), 1 << i)); var d uint8 = min(1 << i, uint8(f())); show(d)",
			"var a uint8 = 1 << i; moved_1 := f(); var moved_2 uint8 = min(uint8(moved_1), 1<<i); show(a, moved_2); moved_3 := f(); var d uint8 = min(1<<i, uint8(moved_3)); show(d)"},
		{"types", "show(i < f() && g(), map[string]*[]int{str: &s, t(): nil})",
			"moved_1 := f(); moved_3 := i < moved_1; if moved_3 { moved_2 := g(); moved_3 = moved_2 }; moved_4 := map[string]*[]int{}; moved_4[str] = &s; moved_5 := t(); moved_4[moved_5] = nil; show(moved_3, moved_4)"},
	})
}

func TestPackageVariables(t *testing.T) {
	run(t, []row{
		{"a value that moves", "package var k = i + f()",
			"var k = func() int { moved_1 := f(); return i + moved_1 }()"},
		{"a value in order", "package var k = f()", ""},
		{"a blank one", "package var _ = i + f()",
			"var _ = func() int { moved_1 := f(); return i + moved_1 }()"},
		{"elements one by one", "package var k = &node{n: i + f(), b: byte(f())}",
			"var k = &node{n: func() int { moved_1 := f(); return i + moved_1 }(), b: byte(f())}"},
		{"a map", "package var k = map[string]int{t(): i}",
			"var k = func() map[string]int { moved_1 := map[string]int{}; moved_2 := t(); moved_1[moved_2] = i; return moved_1 }()"},
		{"several of one call", "package var k, l = two()", ""},
		{"a type without a name here", "package var k = []any{i, lib.H() + lib.H()}[f()+i]",
			"var k = func() any { moved_1 := lib.H(); moved_2 := lib.H(); moved_3 := f(); return []any{i, moved_1 + moved_2}[moved_3+i] }()"},
		{"a type of its own", "package var k = func(a any) struct{ f func(int, ...string) (ok bool); c <-chan int; a [2]interface{ m() }; t lib.T } { panic(a) }(mok[t()])",
			"var k = func() struct { f func(int, ...string) bool; c <-chan (int); a [2]interface{ m() }; t lib.T } { moved_1 := t(); moved_2 := mok[moved_1]; return func(a any) struct { f func(int, ...string) (ok bool); c <-chan int; a [2]interface{ m() }; t lib.T } { panic(a) }(moved_2) }()"},
	})
}

func TestEmptyArrays(t *testing.T) {
	zero := func(rewritten string) string {
		if !goversion.EmptyIndexIsZero {
			return "" // as it is
		}
		return rewritten
	}
	run(t, []row{
		{"an element", "show([0]int{}[i])", zero("show([0]int{}[0*int(i)])")},
		{"through a pointer", "var k *[0]pair; show(k[i])", zero("var k *[0]pair; show(k[0*int(i)])")},
		{"an element that is assigned to", "var k [0]int; k[i] = 1; k[i]++; show(&k[i])", ""},
		{"an array with elements", "show(arr[i])", ""},
		{"elements that are in no register", "show([0][2]int{}[i], [0]struct{ a, b, c, d, e int }{}[i])", ""},
	})
}

func TestMethodValues(t *testing.T) {
	run(t, []row{
		{"a call", "func run[T named](a T) { a.name() }", ""},
		{"a value", "func run[T named](a T) { show(a.name) }",
			"func run[T named](a T) { show(func() func() string { moved_1 := a; if (interface{})(moved_1) == nil { _ = *(*interface{})(nil) }; return func() string { return moved_1.name() } }()) }"},
		{"parameters", "func run[T interface{ m(int, ...string) }](a T) { k := a.m; k(1) }",
			"func run[T interface{ m(int, ...string) }](a T) { k := func() func(int, ...string) { moved_1 := a; if (interface{})(moved_1) == nil { _ = *(*interface{})(nil) }; return func(moved_p0 int, moved_p1 ...string) { moved_1.m(moved_p0, moved_p1...) } }(); k(1) }"},
		{"a value of a type", "k := p; show(k.name)", ""},
	})
}

// Where both sides of an operation with assignment can panic, the place is read first. The value of a map's entry comes before its key.
func TestSides(t *testing.T) {
	run(t, []row{
		{"an element", "s[i] += s[j]", "s[i] = s[i] + (s[j])"},
		{"a field of a pointer", "p.n -= s[j]", "p.n = p.n - (s[j])"},
		{"one message for both", "p.n += p.kid.n", ""},
		{"what cannot fail", "s[i] += j; i += s[j]; arr[1] += s[i]; s[i]++; s[i] /= 3", ""},
		{"operands that cannot fail", "s[i] <<= j; s[i] += j << 2; s[i] += j / 2; s[i] += int(1.5 / float64(j))", ""},
		{"a quotient and a shift", "s[i] += 1 / j; s[i] |= 1 << j", "s[i] = s[i] + (1 / j); s[i] = s[i] | (1 << j)"},
		{"a call comes first", "s[i] += f() / j", "moved_1 := f(); s[i] = s[i] + (moved_1 / j)"},
		{"an assertion comes first", "s[i] += x.(int)", "moved_1 := x.(int); s[i] += moved_1"},
		{"operands of the place are evaluated once", "p.kids[i].n += s[j]; s[i*2] += s[j]",
			"moved_1 := p.kids; moved_1[i].n = moved_1[i].n + (s[j]); moved_2 := i * 2; s[moved_2] = s[moved_2] + (s[j])"},
		{"indexes that are computed come first", "p.kids[s[i]].kids[i/j].n += s[j]",
			"moved_1 := i / j; moved_2 := p.kids[s[i]].kids; moved_2[moved_1].n = moved_2[moved_1].n + (s[j])"},
		{"a value type may be an array", "func run[T []int | [1]int](k T) { k[i] += s[j] }", "func run[T []int | [1]int](k T) { k[i] = k[i] + (s[j]) }"},
		{"parts by statements of their own come first", "s[i] += mi[s[j]]; s[i] += []int{s[j]}[0]; ss[i] += string(rune(s[j]))",
			"moved_1 := mi[s[j]]; s[i] += moved_1; moved_2 := []int{s[j]}; s[i] = s[i] + (moved_2[0]); moved_3 := string(rune(s[j])); ss[i] += moved_3"},
		{"a slice that moves and becomes an array", "s[i] += [1]int(s[j:])[0]", "moved_1 := s[j:]; s[i] = s[i] + ([1]int(moved_1)[0])"},
		{"a sum of strings is one with its place", "ss[i] += ss[j] + str; s[i] += int((ss[j] + str)[0])",
			"ss[i] = ss[i] + (ss[j] + str); moved_1 := ss[j] + str; s[i] = s[i] + (int((moved_1)[0]))"},
		{"the value of an entry", "mi[s[i]] += s[j]; mi[s[i]] = s[j]; p.take(0, 0); mi[i] = s[j]",
			"moved_1 := s[j]; mi[s[i]] += moved_1; moved_2 := s[j]; mi[s[i]] = moved_2; p.take(0, 0); mi[i] = s[j]"},
		{"a quotient of an entry", "mi[s[i]] /= s[j]; mi[s[i]] %= s[j]", ""},
		{"an element that is set", "s[i] = s[j]", ""},
	})
}

// A statement whose order cannot be expressed is refused.
func TestRefusedOrder(t *testing.T) {
	run(t, []row{
		{"a type of another package", "package var k = lib.V[i + f()]",
			"refused at lib.V[i"},
		{"a type with a hidden name", "func run[T interface{ m() pair }](a T) { type pair int; show(a.m) }",
			"refused at a.m)"},
		{"a literal of a hidden type", "type list map[string]text; { type text int; show(list{t(): {str}}) }",
			"refused at {str}})"},
		{"a boolean of a hidden type", "type flag bool; var k func(int, flag); { type flag int; k(i, 1 < f() && i < f()) }",
			"refused at 1"},
		{"a method that recovers", "func run[T interface{ saves() }](a T) { k := a.saves; defer k() }",
			`refused at a.saves;`},
		{"a post statement that recovers", "for ; i < 3; x, i = recover(), i + f() { show() }",
			"refused at x,"},
	})
}

// A shift of a map's entry by a negative count leaves the key in the map.
func TestShiftsOfEntries(t *testing.T) {
	run(t, []row{
		{"a count", "m[str] <<= i",
			`moved_1 := m; moved_2 := str; moved_3 := i; if moved_3 < 0 { moved_1[moved_2] = moved_1[moved_2] }; moved_1[moved_2] <<= moved_3`},
		{"to the right, and a call", "q().kid.next = nil; m[t()] >>= s[f()]",
			`moved_1 := q(); moved_1.kid.next = nil; moved_2 := t(); moved_3 := f(); moved_4 := m; moved_5 := moved_2; moved_6 := s[moved_3]; if moved_6 < 0 { moved_4[moved_5] = moved_4[moved_5] }; moved_4[moved_5] >>= moved_6`},
		{"a constant count", "m[str] <<= 2", ""},
		{"a count without a sign", "m[str] <<= b", ""},
		{"a constant key", "m[\"a\"] <<= i",
			`moved_1 := m; moved_2 := i; if moved_2 < 0 { moved_1["a"] = moved_1["a"] }; moved_1["a"] <<= moved_2`},
		{"an element of a slice", "s[i] <<= j", ""},
		{"another operation", "m[str] += i", ""},
	})
}

// Where more than the first value of an assignment can fail, the others are evaluated first.
func TestSeveralThatFail(t *testing.T) {
	run(t, []row{
		{"a swap", "s[i], s[j] = s[j], s[i]",
			`moved_1 := s[i]; moved_2 := s[j]; s[i], s[j] = moved_2, moved_1`},
		{"three elements", "s[i], s[j], s[0] = s[j], s[0], s[i]",
			`moved_1 := s[0]; moved_2 := s[i]; moved_3 := s[j]; s[i], s[j], s[0] = moved_3, moved_1, moved_2`},
		{"a place whose operands fail", "s[i], p.kids[j].n = s[j], s[i]",
			`moved_1 := p.kids; moved_2 := s[i]; moved_3 := s[j]; s[i], moved_1[j].n = moved_3, moved_2`},
		{"the operands of the first place", "p.kids[i].n, s[j] = s[j], s[i]",
			`moved_1 := s[i]; moved_2 := s[j]; p.kids[i].n, s[j] = moved_2, moved_1`},
		{"pointers alone", "p.n, p.kid = p.kid.n, p.kid.kid", ""},
		{"a local array", "var k [3]int; k[i], k[j] = k[j], k[i]",
			`var k [3]int; moved_1 := k[i]; moved_2 := k[j]; k[i], k[j] = moved_2, moved_1`},
		{"a local array and another", "var k, l [3]int; k[i], l[j] = l[j], l[i]", ""},
		{"constant indexes of an array", "var k [3]int; k[0], k[1] = k[1], k[0]", ""},
		{"a local variable", "k := 0; k, s[i] = s[j], s[i]", ""},
		{"a local variable that is read", "k := 0; k, s[i] = s[j], s[k]",
			`k := 0; moved_1 := s[k]; moved_2 := s[j]; k, s[i] = moved_2, moved_1`},
		{"a variable of the package", "i, s[j] = s[0], s[1]",
			`moved_1 := s[1]; moved_2 := s[0]; i, s[j] = moved_2, moved_1`},
		{"the blank variable", "_, s[j] = s[0], s[1]", ""},
		{"a definition", "k, l := s[i], s[j]; _, _ = k, l", ""},
		{"entries of maps", "m[str], mi[i] = m[mst[str]], mi[j]", ""},
		{"what is evaluated ahead stays ahead", "s[i], s[j] = x.(int), s[0]", ""},
		{"a value that cannot fail", "s[i], s[j] = s[j], 0", ""},
		{"an element of a type parameter's type", "func run[T []int | [1]int](a []T) { a[0][i], a[1][j] = a[1][j], a[0][i] }",
			`func run[T []int | [1]int](a []T) { moved_1 := a[0][i]; moved_2 := a[1][j]; a[0][i], a[1][j] = moved_2, moved_1 }`},
	})
}

func TestNamesAreNew(t *testing.T) {
	run(t, []row{{"names of the program", "moved_1 := 1; ints(i, f(), moved_1)", "moved_1 := 1; moved__1 := f(); ints(i, moved__1, moved_1)"}})
}

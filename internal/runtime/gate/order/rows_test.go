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

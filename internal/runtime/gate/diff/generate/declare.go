package generate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// A world is the set of declarations of a program. Random declarations are tried until the type checker accepts them,
// so this package need not restate the rules about recursive, comparable or ambiguous types.
type world struct {
	named   []*declaration
	sigs    []string // parameters and results of the methods M0, M1, ...
	aliases []string // types of the pool, each declared as an alias
	pool    []types.Type
	pkg     *types.Package
}

// A declaration is a named type with its methods.
type declaration struct {
	name    string // T0ø, G1ø, I0ø
	params  string // "[A any]", or "" if the type is not generic
	self    string // the type within its own declaration: G1ø[A]
	under   string
	methods []*method
}

// A method is declared with a name and a signature. Its body is written later.
type method struct {
	name, sig string
	pointer   bool
}

// text returns the type declaration.
func (d *declaration) text() string { return "type " + d.name + d.params + " " + d.under + "\n" }

// head returns the declaration of the method without its body.
func (m *method) head(d *declaration) string {
	star := ""
	if m.pointer {
		star = "*"
	}
	return "func (v " + star + d.self + ") " + m.name + m.sig
}

// declared returns the type declarations as text. Methods are written separately.
func (w *world) declared() []string {
	var out []string
	for _, d := range w.named {
		out = append(out, d.text())
	}
	return out
}

// check type-checks all declarations so far, and reports whether they are valid.
func (w *world) check() bool {
	var b strings.Builder
	b.WriteString(strings.Join(w.declared(), ""))
	for _, d := range w.named {
		for _, m := range d.methods {
			b.WriteString(m.head(d) + " {}\n")
		}
	}
	for i, a := range w.aliases {
		fmt.Fprintf(&b, "type pool%d = %s\n", i, a)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "d.go", "package tool\n"+imports(b.String())+b.String(), 0)
	if err != nil {
		panic("generate: " + err.Error() + "\n" + b.String())
	}
	imp, err := std.Importer()
	if err != nil {
		panic("generate: " + err.Error())
	}
	conf := types.Config{IgnoreFuncBodies: true, Sizes: types.SizesFor("gc", "amd64"), Importer: imp}
	w.pkg, err = conf.Check("tool", fset, []*ast.File{f}, nil)
	return err == nil
}

// attempt repeats a change until the type checker accepts it, at most 12 times, and reports whether it did. undo
// reverts a change that was not accepted.
func (g *gen) attempt(change func(), undo func()) bool {
	for range 12 {
		change()
		if g.check() {
			return true
		}
		undo()
	}
	return false
}

// declare fills the world with types and methods.
func (g *gen) declare() {
	for i := range 1 + g.IntN(2) {
		g.named = append(g.named, &declaration{name: fmt.Sprintf("I%d%s", i, mark), under: "interface{ M0() }"})
	}
	for i := range 2 + g.IntN(5) {
		g.named = append(g.named, &declaration{name: fmt.Sprintf("T%d%s", i, mark), under: "struct{}"})
	}
	for i := range g.IntN(3) {
		d := &declaration{name: fmt.Sprintf("G%d%s", i, mark), params: "[A any]", under: "struct{}"}
		d.self = d.name + "[A]"
		if g.percent(30) {
			d.params, d.self = "[K comparable, A any]", d.name+"[K, A]"
		}
		g.named = append(g.named, d)
	}
	for range 4 {
		g.sigs = append(g.sigs, g.signature(nil, 1))
	}
	for _, d := range g.named {
		if d.self == "" {
			d.self = d.name
		}
		placeholder := d.under
		g.attempt(func() { d.under = g.underlying(d) }, func() { d.under = placeholder })
	}
	for _, d := range g.named {
		for range g.IntN(6) {
			m := g.method(d)
			d.methods = append(d.methods, m)
			if !g.check() {
				d.methods = d.methods[:len(d.methods)-1]
			}
		}
	}
	g.fillPool()
	g.writeMethods()
}

// method returns a method for a declared type: one of those that several types share, or one that the standard library
// calls.
func (g *gen) method(d *declaration) *method {
	m := &method{pointer: g.percent(45)}
	if g.percent(45) {
		i := g.IntN(len(g.sigs))
		m.name, m.sig = fmt.Sprintf("M%d", i), g.sigs[i]
		return m
	}
	c := pick(g, called...)
	m.name, m.sig = c.name, c.sig
	m.pointer = m.pointer || c.changes
	return m
}

// fillPool chooses the types that operations use.
func (g *gen) fillPool() {
	for _, d := range g.named {
		if d.params == "" {
			g.addToPool(func() string { return d.name })
			if g.percent(50) {
				g.addToPool(func() string { return "*" + d.name })
			}
		}
	}
	for range 4 {
		g.addToPool(func() string { return g.reference(nil) })
	}
	for range 8 {
		g.addToPool(func() string { return g.typ(nil, 3) })
	}
	g.check()
	for i := range g.aliases {
		g.pool = append(g.pool, types.Unalias(g.pkg.Scope().Lookup(fmt.Sprintf("pool%d", i)).Type()))
	}
}

// addToPool adds a type to the pool if the type checker accepts one of several attempts.
func (g *gen) addToPool(text func() string) {
	n := len(g.aliases)
	g.attempt(func() { g.aliases = append(g.aliases, text()) }, func() { g.aliases = g.aliases[:n] })
}

package yaegi_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A generator writes random plain programs that type-check, end, and contain nothing that gate.WhyNotYaegi rejects as
// such. The same seed writes the same program. Every variable ends up in the returned value, so a wrong value is
// visible.
type generator struct {
	*rand.Rand
	text     strings.Builder
	scopes   [][]local
	helpers  []signature
	fun      signature
	names    int
	straight bool // no loops are written
	loops    int  // that the statement is in: values may not grow there
	depth    int  // of blocks
	budget   int  // statements left
}

type local struct {
	name, typ string
	fixed     bool // constants and counters
	global    bool
}

type signature struct {
	name     string
	params   []local
	results  []string
	named    bool
	variadic bool
}

func generatedTypes() []string {
	return []string{"int", "int", "float64", "float64", "string", "string", "bool", "bool", "rune", "byte", "any",
		"any", "error",
		"[]int", "[]string", "[]float64", "[]bool", "[]any", "[][]int", "[]map[string]any", "[]rune",
		"map[string]int", "map[string]float64", "map[string]any", "map[int]string", "map[string]bool",
		"map[string][]string",
		"map[rune]int", "[][]string", "map[string]map[string]int", "[]byte", "[]error", "[][]any"}
}

// generate writes the program of a seed, with or without loops.
func generate(seed uint64, loops bool) string {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), scopes: [][]local{nil}, straight: !loops}
	var parts []string // in any order
	part := func() {
		parts = append(parts, g.text.String())
		g.text.Reset()
	}
	g.globals()
	part()
	for range max(0, g.IntN(6)-2) {
		g.helper()
		part()
	}
	g.fun = signature{name: "Run", results: []string{"any", "error"}}
	g.line("func Run(call *recurgent.Call) (any, error) {")
	g.push()
	g.line("out := []any{}")
	g.budget = 1 + g.IntN(12)
	for g.budget > 0 {
		g.statement()
	}
	g.line("%s", g.final())
	g.scopes = g.scopes[:len(g.scopes)-1]
	g.line("}")
	part()
	g.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return "package tool\n\n" + strings.Join(parts, "\n")
}

func (g *generator) line(format string, args ...any) {
	g.text.WriteString(strings.Repeat("\t", len(g.scopes)-1))
	fmt.Fprintf(&g.text, format+"\n", args...)
}

func (g *generator) push()               { g.scopes = append(g.scopes, nil) }
func (g *generator) one(n int) bool      { return g.IntN(n) == 0 }
func pick[T any](g *generator, s ...T) T { return s[g.IntN(len(s))] }

func (g *generator) inRun() bool { return g.fun.name == "Run" }

// pop ends a block. Variables declared in it are added to the trace, or used without effect.
func (g *generator) pop() {
	top := g.scopes[len(g.scopes)-1]
	for _, v := range top {
		if v.global {
			continue
		}
		switch {
		case g.inRun() && v.typ == "[]any":
			g.line("out = append(out, %s...)", v.name)
		case g.inRun() && v.typ != "error":
			g.line("out = append(out, %s)", v.name)
		case v.typ == "error":
			g.line("if %s != nil { fmt.Sprint(%s.Error()) }", v.name, v.name)
		default:
			g.line("fmt.Sprint(%s)", v.name)
		}
	}
	if g.inRun() && (g.one(3) || len(top) == 0) {
		g.line("out = append(out, %d)", g.IntN(100))
	}
	g.scopes = g.scopes[:len(g.scopes)-1]
}

func (g *generator) declare(name, typ string) {
	g.scopes[len(g.scopes)-1] = append(g.scopes[len(g.scopes)-1], local{name: name, typ: typ})
}

// fresh returns a new name, or sometimes one of an outer block, which it hides.
func (g *generator) fresh() string {
	if g.one(4) && len(g.scopes) > 2 {
		if outer := g.scopes[g.IntN(len(g.scopes)-1)]; len(outer) > 0 {
			name := pick(g, outer...).name
			if !slices.ContainsFunc(g.scopes[len(g.scopes)-1], func(v local) bool { return v.name == name }) {
				return name
			}
		}
	}
	g.names++
	if g.one(12) {
		name := pick(g, "max", "min", "new", "cap", "copy", "close", "hex", "base64", "err", "i", "result", "clear",
			"print")
		if !slices.ContainsFunc(g.scopes[len(g.scopes)-1], func(v local) bool { return v.name == name }) {
			return name
		}
	}
	return fmt.Sprintf("%s%d", pick(g, "v", "x", "n", "item", "res"), g.names)
}

// visible returns the variables of a type that are not hidden. "" means every type.
func (g *generator) visible(typ string, assignable bool) []local {
	var out []local
	seen := map[string]bool{}
	for _, scope := range slices.Backward(g.scopes) {
		for _, v := range slices.Backward(scope) {
			if !seen[v.name] && (typ == "" || v.typ == typ) && !(assignable && (v.fixed || v.global)) {
				out = append(out, v)
			}
			seen[v.name] = true
		}
	}
	return out
}

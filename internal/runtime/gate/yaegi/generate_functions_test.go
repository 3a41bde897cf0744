package yaegi_test

import (
	"fmt"
	"slices"
	"strings"
)

func (g *generator) globals() {
	add := func(name, typ string) {
		g.scopes[0] = append(g.scopes[0], local{name: name, typ: typ, fixed: true, global: true})
	}
	if g.one(2) {
		g.line("const (\n\tkA = 1\n\tkB = -22\n\tkC int = 3\n)")
		add("kA", "int")
		add("kB", "int")
		add("kC", "int")
	}
	if g.one(3) {
		g.line("const kLimit int = %d", g.IntN(9))
		add("kLimit", "int")
	}
	if g.one(3) {
		g.line("const kRate, kName = %s, %s", g.literal("float64"), g.literal("string"))
		add("kRate", "float64")
		add("kName", "string")
	}
	if g.one(3) {
		g.line("const kOn = %s", pick(g, "true", "false"))
		add("kOn", "bool")
	}
	if g.one(3) {
		g.line("var re = regexp.MustCompile(`%s`)", pick(g, `[0-9]+`, `([a-z]+) ?(\d*)`, `(?i)h.`, `\s+`))
		add("re", "*regexp.Regexp")
	}
	if g.one(5) {
		g.line("var rep = strings.NewReplacer(\"a\", \"1\", \"l\", \"\")")
		add("rep", "*strings.Replacer")
	}
	g.line("")
}

func (g *generator) helper() {
	s := signature{name: fmt.Sprintf("help%d", len(g.helpers)), named: g.one(30)}
	var params []string
	g.push()
	for i := range g.IntN(4) {
		p := local{name: fmt.Sprintf("p%d", i), typ: pick(g, generatedTypes()...)}
		if g.one(8) {
			p.typ = "*recurgent.Call"
		}
		s.params = append(s.params, p)
		g.declare(p.name, p.typ)
		params = append(params, p.name+" "+p.typ)
	}
	if g.one(4) {
		s.variadic = true
		elem := pick(g, "int", "string", "any", "float64")
		s.params = append(s.params, local{name: "rest", typ: elem})
		g.declare("rest", "[]"+elem)
		params = append(params, "rest ..."+elem)
	}
	var results []string
	for i := range 1 + g.IntN(3) {
		typ := pick(g, generatedTypes()...)
		if i > 0 && g.one(2) {
			typ = pick(g, "error", "bool")
		}
		s.results = append(s.results, typ)
		if s.named {
			g.declare(fmt.Sprintf("r%d", i), typ)
			typ = fmt.Sprintf("r%d %s", i, typ)
		}
		results = append(results, typ)
	}
	body := g.scopes[len(g.scopes)-1]
	g.scopes = g.scopes[:len(g.scopes)-1]
	list := strings.Join(results, ", ")
	if s.named || len(results) > 1 {
		list = "(" + list + ")"
	}
	g.line("func %s(%s) %s {", s.name, strings.Join(params, ", "), list)
	g.scopes = append(g.scopes, body)
	g.fun = s
	g.budget = 1 + g.IntN(5)
	for g.budget > 0 {
		g.statement()
	}
	for _, v := range g.scopes[len(g.scopes)-1][len(body):] { // parameters may be unused
		g.line("fmt.Sprint(%s)", v.name)
	}
	g.line("%s", g.final())
	g.scopes = g.scopes[:len(g.scopes)-1]
	g.line("}\n")
	g.helpers = append(g.helpers, s)
}

// final returns the return statement at the end of a function.
func (g *generator) final() string {
	if !g.inRun() || g.one(5) {
		return g.returning()
	}
	list := []string{"out"}
	for _, v := range g.visible("", false) {
		if v.typ == "error" || strings.HasPrefix(v.typ, "*") {
			continue
		}
		list = append(list, v.name)
	}
	for _, v := range g.visible("error", false) {
		g.line("if %s != nil { out = append(out, %s.Error()) }", v.name, v.name)
	}
	return "return []any{" + strings.Join(list, ", ") + "}, nil"
}

func (g *generator) returning() string {
	if g.inRun() {
		if g.one(5) {
			return "return nil, " + g.failure()
		}
		if g.one(2) {
			return "return " + g.expr(pick(g, generatedTypes()...), 2) + ", nil"
		}
		return "return " + g.expr("any", 2) + ", nil"
	}
	if g.fun.named && g.one(2) {
		hidden := false // a bare return needs its results visible
		for i := range g.fun.results {
			name := fmt.Sprintf("r%d", i)
			for _, s := range g.scopes[min(2, len(g.scopes)):] {
				hidden = hidden || slices.ContainsFunc(s, func(v local) bool { return v.name == name })
			}
		}
		if !hidden {
			return "return"
		}
	}
	for _, h := range g.helpers {
		if slices.Equal(h.results, g.fun.results) && g.one(3) {
			return "return " + g.callOf(h, 1)
		}
	}
	var list []string
	for _, t := range g.fun.results {
		list = append(list, g.expr(t, 2))
	}
	return "return " + strings.Join(list, ", ")
}

func (g *generator) failure() string {
	return g.expr("error!", 1)
}

func (g *generator) callOf(h signature, depth int) string {
	var args []string
	for i, p := range h.params {
		if h.variadic && i == len(h.params)-1 {
			if g.one(3) {
				args = append(args, g.expr("[]"+p.typ, 0)+"...")
				break
			}
			for range g.IntN(3) {
				args = append(args, g.expr(p.typ, depth-1))
			}
			break
		}
		if p.typ == "*recurgent.Call" {
			if vs := g.visible(p.typ, false); len(vs) > 0 {
				args = append(args, pick(g, vs...).name)
			} else if g.inRun() {
				args = append(args, "call")
			} else {
				args = append(args, "nil")
			}
			continue
		}
		args = append(args, g.expr(p.typ, depth-1))
	}
	return h.name + "(" + strings.Join(args, ", ") + ")"
}

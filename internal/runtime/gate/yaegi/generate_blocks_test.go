package yaegi_test

import (
	"fmt"
	"strings"
)

// block writes statements between braces that the caller has written.
func (g *generator) block(extra ...local) {
	g.push()
	g.scopes[len(g.scopes)-1] = extra
	g.depth++
	for range 1 + g.IntN(3) {
		g.statement()
	}
	g.pop()
	g.depth--
}

func (g *generator) statement() {
	g.budget--
	if g.depth > 3 || g.one(2) {
		g.simple()
		return
	}
	switch g.IntN(10) {
	case 0, 1, 2:
		g.ifStatement()
	case 3, 4, 5:
		if g.loops < 2 && !g.straight {
			g.loop()
		} else {
			g.simple()
		}
	case 6, 7:
		g.switchStatement()
	case 8:
		g.line("{")
		g.block()
		g.line("}")
	case 9:
		g.line("if %s {", g.test(2))
		g.line("\t%s", g.returning())
		g.line("}")
	}
}

func (g *generator) ifStatement() {
	switch g.IntN(5) {
	case 4:
		g.line("if _, err := strconv.Atoi(%s); err %s nil {", g.expr("string", 1), pick(g, "!=", "=="))
		g.block(local{name: "err", typ: "error"})
	case 0: // comma ok
		if g.loops > 0 && !g.one(20) {
			g.line("if %s {", g.test(2))
			g.block()
			break
		}
		typ := pick(g, "float64", "string", "bool", "[]any", "map[string]any", "int")
		name, ok := g.fresh(), "ok"
		from := fmt.Sprintf("%s.(%s)", g.anySource(), typ)
		if m := g.visible("map[string]"+typ, false); len(m) > 0 && g.one(2) {
			from = fmt.Sprintf("%s[%s]", pick(g, m...).name, g.expr("string", 0))
		}
		g.line("if %s, %s := %s; %s {", name, ok, from, pick(g, "ok", "!ok", "ok && "+g.variable("bool")))
		g.push()
		g.declare(name, typ)
		g.declare("ok", "bool")
		g.block()
		g.pop()
	case 1:
		typ := pick(g, "int", "float64", "string", "bool")
		name := g.fresh()
		g.line("if %s := %s; %s {", name, g.expr(typ, 1), g.condition(name, typ))
		g.block(local{name: name, typ: typ, fixed: true})
	default:
		g.line("if %s {", g.test(2))
		g.block()
	}
	for g.one(4) {
		if g.one(3) {
			typ, name := pick(g, "int", "float64", "string", "bool"), g.fresh()
			g.line("} else if %s := %s; %s {", name, g.expr(typ, 1), g.condition(name, typ))
			g.block(local{name: name, typ: typ, fixed: true})
			continue
		}
		g.line("} else if %s {", g.test(2))
		g.block()
	}
	if g.one(2) {
		g.line("} else {")
		g.block()
	}
	g.line("}")
}

func (g *generator) condition(name, typ string) string {
	switch typ {
	case "int":
		return name + pick(g, " > 1", " == 0", "%2 == 0", " < 5")
	case "float64":
		return name + pick(g, " > 1", " == 0", " <= 2.5")
	case "string":
		return name + pick(g, ` == ""`, ` != "a"`, ` < "m"`)
	}
	return pick(g, "", "!") + name
}

func (g *generator) loop() {
	g.loops++
	defer func() { g.loops-- }()
	name := g.fresh()
	counter := local{name: name, typ: "int", fixed: true}
	switch g.IntN(7) {
	case 0:
		g.line("for %s := %d; %s < %d; %s {", name, g.IntN(2), name, 1+g.IntN(4),
			pick(g, name+"++", name+" += 1", name+" += 2", name+" = "+name+" + 1"))
		if g.one(20) {
			g.line("\t%s", pick(g, name+"++", name+" += 1"))
		}
		g.block(counter)
	case 1:
		g.line("for %s := %d; %s >= 0; %s-- {", name, g.IntN(4), name, name)
		g.block(counter)
	case 2:
		g.names++
		n := fmt.Sprintf("count%d", g.names)
		g.line("%s := 0", n)
		g.scopes[len(g.scopes)-1] = append(g.scopes[len(g.scopes)-1], local{name: n, typ: "int", fixed: true})
		g.line("for %s {", pick(g, n+" < 3", n+" < 4 && "+g.variable("bool")))
		g.line("\t%s", pick(g, n+"++", n+" += 1", n+" = "+n+" + 1"))
		g.block()
	case 3:
		g.names++
		n := fmt.Sprintf("count%d", g.names)
		g.line("%s := 0", n)
		g.scopes[len(g.scopes)-1] = append(g.scopes[len(g.scopes)-1], local{name: n, typ: "int", fixed: true})
		g.line("for {")
		g.line("\t%s++", n)
		g.line("\tif %s > %d { break }", n, 1+g.IntN(3))
		g.block()
	default:
		elem := pick(g, "int", "string", "float64", "any", "bool", "rune", "map[string]any", "[]int")
		from := g.expr("[]"+elem, 1)
		if vs := g.visible("string", true); len(vs) > 0 && g.one(3) {
			elem, from = "rune", pick(g, vs...).name
		}
		value := g.fresh()
		for value == name {
			value = g.fresh()
		}
		switch 1 + g.IntN(3) {
		case 1:
			g.line("for %s := range %s {", name, from)
			g.block(local{name: name, typ: "int"})
		case 2:
			g.line("for _, %s := range %s {", value, from)
			g.block(local{name: value, typ: elem})
		case 3:
			g.line("for %s, %s := range %s {", name, value, from)
			g.block(local{name: name, typ: "int"}, local{name: value, typ: elem})
		}
	}
	g.line("}")
}

func (g *generator) switchStatement() {
	typ := pick(g, "int", "string", "float64", "rune", "bool", "string")
	init := ""
	extra := []local{}
	if g.one(50) {
		name, t := g.fresh(), pick(g, "int", "string")
		init = fmt.Sprintf("%s := %s; ", name, g.expr(t, 1))
		extra = append(extra, local{name: name, typ: t})
		g.push()
		g.declare(name, t)
	}
	tag := g.variable(typ)
	if g.one(3) || strings.Contains(tag, "{") || typ == "bool" {
		tag = ""
	}
	g.line("switch %s%s {", init, tag)
	cases := map[string]bool{}
	n := 1 + g.IntN(4)
	def := pick(g, n-1, 99, 99, 99)
	for i := range n {
		if i == def {
			g.line("default:")
		} else if tag == "" {
			g.line("case %s:", g.test(2))
		} else {
			c := g.literal(typ)
			if g.one(3) {
				c = g.expr(typ, 1)
			}
			if cases[c] {
				continue
			}
			cases[c] = true
			g.line("case %s:", c)
		}
		g.push()
		g.depth++
		for range g.IntN(3) {
			g.statement()
		}
		if g.one(4) {
			g.pop()
			g.line("\t%s", "break")
		} else {
			g.pop()
		}
		g.depth--
	}
	g.line("}")
	if len(extra) > 0 {
		g.scopes = g.scopes[:len(g.scopes)-1]
	}
}

// escape leaves a loop, a switch or the function under a condition.
func (g *generator) escape() {
	what := g.returning()
	if g.loops > 0 && g.one(2) {
		what = pick(g, "break", "continue")
	}
	g.line("if %s { %s }", g.test(2), what)
}

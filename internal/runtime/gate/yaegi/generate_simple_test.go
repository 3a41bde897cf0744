package yaegi_test

import (
	"fmt"
	"slices"
	"strings"
)

// simple writes a statement without blocks.
func (g *generator) simple() {
	switch n := g.IntN(24); n {
	case 0, 1, 2, 3, 4:
		g.declaration()
	case 5, 6, 7:
		g.assignment()
	case 8:
		if vs := g.visible(pick(g, "int", "float64"), true); len(vs) > 0 {
			g.line("%s%s", pick(g, vs...).name, pick(g, "++", "--"))
		}
	case 9, 10:
		typ := pick(g, "int", "float64", "string")
		if vs := g.visible(typ, true); len(vs) > 0 {
			op := pick(g, "+=", "-=", "*=", "/=")
			if typ == "int" && g.one(4) {
				op = "%="
			}
			if typ == "string" {
				op = "+="
			}
			g.line("%s %s %s", pick(g, vs...).name, op, g.calm(typ))
		}
	case 11, 12, 13:
		g.element()
	case 14:
		g.swap()
	case 15, 16:
		g.commaOK()
	case 17, 18:
		g.several()
	case 19:
		elem := pick(g, "int", "string", "any", "float64", "bool", "rune", "map[string]any", "[]int")
		if vs := g.visible("[]"+elem, true); len(vs) > 0 {
			v := pick(g, vs...).name
			if g.one(4) && g.loops == 0 {
				g.line("%s = append(%s, %s...)", v, v, g.expr("[]"+elem, 1))
			} else {
				g.line("%s = append(%s, %s)", v, v, pick(g, g.calm(elem), g.calm(elem)+", "+g.calm(elem)))
			}
		}
	case 20:
		if g.inRun() {
			g.line("out = append(out, %s)", g.calm(pick(g, "int", "float64", "string", "bool", "any", "rune")))
		}
	case 21:
		if g.inRun() && g.one(20) {
			g.line("call.Context[%s] = %s", g.expr("string", 0), g.calm(pick(g, "any", "int", "string", "float64")))
		} else if g.one(10) {
			g.line("_ = %s", g.expr(pick(g, generatedTypes()...), 1))
		}
	case 22:
		g.escape()
	case 23:
		g.native()
	}
}

func (g *generator) declaration() {
	typ := pick(g, generatedTypes()...)
	name := g.fresh()
	form := g.IntN(8)
	e := g.expr(typ, 2)
	if g.loops > 0 {
		e = g.calm(typ)
	}
	switch {
	case form == 0 && g.one(3):
		other := name + "g"
		g.line("var (")
		g.line("\t%s %s", name, typ)
		g.line("\t%s = %s", other, g.expr("int", 1))
		g.line(")")
		g.declare(other, "int")
	case form == 0:
		g.line("var %s %s", name, typ)
	case form == 1:
		g.line("var %s %s = %s", name, typ, e)
	case form == 2 && typ != "any" && typ != "error" && typ != "rune" && typ != "byte" && typ != "float64":
		g.line("var %s = %s", name, e)
	case form == 3:
		other, t := g.fresh(), pick(g, "int", "string", "bool")
		if other == name || slices.Contains([]string{"any", "error", "rune", "byte", "float64"}, typ) {
			g.line("var %s %s = %s", name, typ, e)
			break
		}
		g.line("var %s, %s %s", name, other, t)
		typ = t
		g.declare(other, t)
	case form == 4 && (typ == "int" || typ == "string" || typ == "bool"):
		g.line("const %s = %s", name, g.literal(typ))
		g.scopes[len(g.scopes)-1] = append(g.scopes[len(g.scopes)-1], local{name: name, typ: typ, fixed: true})
		return
	default:
		if typ == "any" || typ == "error" || typ == "rune" || typ == "byte" || typ == "float64" {
			if typ == "any" && g.one(2) {
				g.line("%s := %s", name, g.anySource())
			} else {
				g.line("var %s %s = %s", name, typ, e)
			}
		} else {
			g.line("%s := %s", name, e)
		}
	}
	g.declare(name, typ)
}

func (g *generator) assignment() {
	if vs := g.visible("", true); len(vs) > 0 {
		v := pick(g, vs...)
		e := g.expr(v.typ, 2)
		if g.loops > 0 {
			e = g.calm(v.typ)
		}
		g.line("%s = %s", v.name, e)
	}
}

func (g *generator) element() {
	typ := pick(g, "[]int", "[]string", "[]float64", "[]bool", "[][]int", "map[string]int", "map[string]float64",
		"map[string]any", "map[int]string", "map[string]bool", "map[string][]string", "[]map[string]any")
	vs := g.visible(typ, true)
	if len(vs) == 0 {
		return
	}
	name := pick(g, vs...).name
	key, elem := "int", strings.TrimPrefix(typ, "[]")
	if m, ok := strings.CutPrefix(typ, "map["); ok {
		key, elem, _ = strings.Cut(m, "]")
	}
	place := fmt.Sprintf("%s[%s]", name, g.expr(key, g.IntN(2)))
	guard := ""
	if strings.HasPrefix(typ, "[]") && !g.one(6) {
		guard = fmt.Sprintf("if len(%s) > 1 { ", name)
		place = fmt.Sprintf("%s[%s]", name, pick(g, "0", "1", "len("+name+")-1"))
	}
	if typ == "[]map[string]any" {
		place, elem = place+fmt.Sprintf("[%s]", g.literal("string")), "any"
	}
	if typ == "[][]int" && g.one(2) {
		place, elem = place+"[0]", "int"
	}
	stmt := place + " = " + g.calm(elem)
	switch {
	case (elem == "int" || elem == "float64") && g.one(2):
		stmt = pick(g, place+"++", place+"--", place+" += "+g.calm(elem), place+" *= "+g.calm(elem),
			place+" -= "+g.calm(elem))
	case elem == "string" && g.one(2):
		stmt = place + " += " + g.literal("string")
	case elem == "[]string" && g.one(2):
		stmt = fmt.Sprintf("%s = append(%s, %s)", place, place, g.calm("string"))
	}
	if guard != "" {
		stmt = guard + stmt + " }"
	}
	g.line("%s", stmt)
}

func (g *generator) swap() {
	typ := pick(g, generatedTypes()...)
	if vs := g.visible(typ, true); len(vs) > 1 {
		a, b := pick(g, vs...).name, pick(g, vs...).name
		if a != b {
			g.line("%s, %s = %s, %s", a, b, b, pick(g, a, a, g.calm(typ)))
		}
	}
}

func (g *generator) commaOK() {
	if g.loops > 0 && !g.one(20) {
		return
	}
	typ := pick(g, "float64", "string", "bool", "[]any", "map[string]any", "int", "any")
	from := fmt.Sprintf("%s.(%s)", g.anySource(), typ)
	if m := g.visible("map[string]"+typ, false); typ == "any" || len(m) > 0 && g.one(2) {
		if len(m) == 0 {
			from = fmt.Sprintf("%s[%s]", pick(g, "call.Kwargs", "call.Context"), g.literal("string"))
			if !g.inRun() {
				return
			}
		} else {
			from = fmt.Sprintf("%s[%s]", pick(g, m...).name, g.expr("string", 0))
		}
	}
	v, ok := g.visible(typ, true), g.visible("bool", true)
	switch {
	case len(v) > 0 && len(ok) > 0 && g.one(30):
		g.line("%s, %s = %s", pick(g, v...).name, pick(g, ok...).name, from)
	case g.one(4):
		name := g.fresh()
		g.line("%s, _ := %s", name, from)
		g.declare(name, typ)
	case g.one(4):
		name := g.fresh()
		g.line("_, %s := %s", name, from)
		g.declare(name, "bool")
	default:
		name, ok := g.fresh(), g.fresh()
		if known := slices.DeleteFunc(slices.Clone(g.scopes[len(g.scopes)-1]),
			func(v local) bool { return v.typ != "bool" || v.fixed }); len(known) > 0 && g.one(2) {
			ok = pick(g, known...).name
		} else if ok != name {
			g.declare(ok, "bool")
		}
		if ok == name {
			return
		}
		g.line("%s, %s := %s", name, ok, from)
		g.declare(name, typ)
	}
}

// several assigns the results of a call.
func (g *generator) several() {
	type call struct {
		text    string
		results []string
	}
	calls := []call{
		{"strconv.Atoi(" + g.expr("string", 1) + ")", []string{"int", "error"}},
		{"strconv.ParseFloat(" + g.expr("string", 1) + ", 64)", []string{"float64", "error"}},
		{"strings.Cut(" + g.expr("string", 1) + ", " + g.literal("string") + ")", []string{"string", "string", "bool"}},
		{"hex.DecodeString(" + g.expr("string", 1) + ")", []string{"[]byte", "error"}},
		{"strconv.ParseBool(" + g.expr("string", 1) + ")", []string{"bool", "error"}},
		{"math.Modf(" + g.expr("float64", 1) + ")", []string{"float64", "float64"}},
	}
	for _, h := range g.helpers {
		calls = append(calls, call{g.callOf(h, 1), h.results})
	}
	c := pick(g, calls...)
	if len(g.helpers) > 0 && g.one(10) {
		g.line("%s", g.callOf(pick(g, g.helpers...), 1))
		return
	}
	assigned, names := g.one(3), []string{}
	for _, t := range c.results {
		vs := g.visible(t, true)
		assigned = assigned && len(vs) > 0
		if assigned {
			names = append(names, pick(g, vs...).name)
		}
	}
	if assigned && len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names) {
		g.line("%s = %s", strings.Join(names, ", "), c.text)
		return
	}
	names = nil
	top := g.scopes[len(g.scopes)-1]
	var fresh []local
	for _, t := range c.results {
		name := g.fresh()
		if known := slices.DeleteFunc(slices.Clone(top), func(v local) bool {
			return v.typ != t ||
				v.fixed
		}); len(known) > 0 && g.one(2) {
			name = pick(g, known...).name // declared earlier in this block, and assigned here
		} else if g.one(9) {
			name = "_"
		} else {
			fresh = append(fresh, local{name: name, typ: t})
		}
		if name != "_" && slices.Contains(names, name) {
			return
		}
		names = append(names, name)
	}
	if len(fresh) == 0 {
		return
	}
	g.line("%s := %s", strings.Join(names, ", "), c.text)
	for _, v := range fresh {
		g.declare(v.name, v.typ)
	}
	if last := c.results[len(c.results)-1]; last == "error" && names[len(names)-1] != "_" && g.one(2) {
		g.line("if %s != nil { %s }", names[len(names)-1], g.returning())
	}
}

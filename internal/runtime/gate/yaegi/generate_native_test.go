package yaegi_test

// native writes uses of values of the host.
func (g *generator) native() {
	name := g.fresh()
	switch g.IntN(12) {
	case 5:
		g.line("%s, e%d := url.Parse(%s)", name, g.names, g.expr("string", 1))
		g.line("if e%d != nil { %s }", g.names, g.returning())
		g.line("%sh := %s.Host + %s.Path", name, name, name)
		g.declare(name+"h", "string")
	case 6:
		g.line("%s := url.Values{}", name)
		g.line("%s.Set(%s, %s)", name, g.literal("string"), g.expr("string", 1))
		g.line("%se := %s.Encode()", name, name)
		g.declare(name+"e", "string")
	case 7:
		g.line("%s, e%d := json.Marshal(%s)", name, g.names,
			g.expr(pick(g, "any", "[]any", "map[string]any", "[]int", "map[string][]string", "string", "float64",
				"[][]int"), 1))
		g.line("if e%d != nil { %s }", g.names, g.returning())
		g.declare(name, "[]byte")
	case 8:
		g.line("%s, e%d := time.Parse(%q, %s)", name, g.names, "2006-01-02",
			pick(g, g.expr("string", 1), `"2024-02-29"`))
		g.line("if e%d == nil {", g.names)
		if g.inRun() {
			g.line("\tout = append(out, %s)", pick(g, name+".Year()", name+".AddDate(0, 1, 0).Format(time.RFC3339)",
				name+".Weekday().String()", name+".Unix()"))
		} else {
			g.line("\t%s", g.returning())
		}
		g.line("}")
	case 9:
		g.line("%s, e%d := time.ParseDuration(%s)", name, g.names, pick(g, g.expr("string", 1), `"90m"`))
		g.line("if e%d == nil && %s.Seconds() > %s {", g.names, name, g.variable("float64"))
		g.line("\t%s", g.returning())
		g.line("}")
	case 10:
		if vs := g.visible(pick(g, "[]int", "[]string", "[]float64"), true); len(vs) > 0 {
			v := pick(g, vs...)
			g.line("if len(%s) > 1 { %s = %s }", v.name, v.name, pick(g, v.name+"[:len("+v.name+")-1]", v.name+"[1:]",
				"append("+v.name+"[:1], "+v.name+"[2:]...)"))
		}
	case 11:
		s := g.variable("string")
		g.line("%s := %s", name, s)
		if g.straight {
			g.line("if len(%s) > 2 && %s[1] == %s { %s = %s[1:] }", name, name, g.literal("byte"), name, name)
			g.declare(name, "string")
			return
		}
		g.line("for i := 0; i < len(%s) && i < 9; i++ {", name)
		g.line("\tc := %s[i]", name)
		if g.inRun() {
			g.line("\tif c >= 'a' && c <= 'z' || c == ' ' { out = append(out, c) }")
		} else {
			g.line("\tif c == 'x' { %s }", g.returning())
		}
		g.line("}")
		g.declare(name, "string")
	case 0:
		g.line("var %s strings.Builder", name)
		g.line("%s.WriteString(%s)", name, g.expr("string", 1))
		switch {
		case !g.straight && g.one(2):
			g.line("for _, r := range %s { %s.WriteRune(r) }", g.expr("[]rune", 0), name)
		case g.one(2):
			g.line("%s.WriteRune(%s)", name, g.expr("rune", 1))
		}
		g.line("%s.WriteByte('-')", name)
		s := g.fresh()
		g.line("%s := %s.String()", s+"b", name)
		g.declare(s+"b", "string")
	case 1:
		if vs := g.visible("[]int", true); len(vs) > 0 {
			g.line("sort.Ints(%s)", pick(g, vs...).name)
		}
	case 2:
		if vs := g.visible("[]string", true); len(vs) > 0 {
			g.line("sort.Strings(%s)", pick(g, vs...).name)
		}
	case 3:
		k := pick(g, "map[string]int", "map[string]any", "map[string]float64")
		if vs := g.visible(k, true); len(vs) > 0 {
			g.line("delete(%s, %s)", pick(g, vs...).name, g.expr("string", 0))
		}
	case 4:
		if vs := g.visible("[]any", true); len(vs) > 0 {
			g.line("%s[%s] = %s", pick(g, vs...).name, g.expr("int", 0), g.calm("any"))
		}
	}
}

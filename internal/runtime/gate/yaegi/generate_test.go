package yaegi

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A generator writes random plain programs: typed, ending, without anything that gate.Choose keeps from yaegi as such. The same
// seed writes the same program. Every variable ends in the returned value, so that a wrong one is seen.
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
	noBreak  bool
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
	return []string{"int", "int", "float64", "float64", "string", "string", "bool", "bool", "rune", "byte", "any", "any", "error",
		"[]int", "[]string", "[]float64", "[]bool", "[]any", "[][]int", "[]map[string]any", "[]rune",
		"map[string]int", "map[string]float64", "map[string]any", "map[int]string", "map[string]bool", "map[string][]string",
		"map[rune]int", "[][]string", "map[string]map[string]int", "[]byte", "[]error", "[][]any"}
}

// generate writes the program of a seed, with loops or without any.
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

// pop ends a block: what it declared goes to the trace, or is used in vain.
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

// fresh returns a new name, or sometimes one of an outer block, which it shadows.
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
		name := pick(g, "max", "min", "new", "cap", "copy", "close", "hex", "base64", "err", "i", "result", "clear", "print")
		if !slices.ContainsFunc(g.scopes[len(g.scopes)-1], func(v local) bool { return v.name == name }) {
			return name
		}
	}
	return fmt.Sprintf("%s%d", pick(g, "v", "x", "n", "item", "res"), g.names)
}

// visible returns the variables of a type, the shadowed ones left out; "" means every type.
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
	for _, v := range g.scopes[len(g.scopes)-1][len(body):] { // parameters need no use
		g.line("fmt.Sprint(%s)", v.name)
	}
	g.line("%s", g.final())
	g.scopes = g.scopes[:len(g.scopes)-1]
	g.line("}\n")
	g.helpers = append(g.helpers, s)
}

// final is a return statement for the end of a function.
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
		hidden := false // a bare return wants its results visible
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

// block writes statements between braces that the caller has opened.
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
		g.line("for %s := %d; %s < %d; %s {", name, g.IntN(2), name, 1+g.IntN(4), pick(g, name+"++", name+" += 1", name+" += 2", name+" = "+name+" + 1"))
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

// escape leaves a loop, a switch or the function under a condition.
func (g *generator) escape() {
	what := g.returning()
	if g.loops > 0 && g.one(2) {
		what = pick(g, "break", "continue")
	}
	g.line("if %s { %s }", g.test(2), what)
}

// native writes what only host values do.
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
		g.line("%s, e%d := json.Marshal(%s)", name, g.names, g.expr(pick(g, "any", "[]any", "map[string]any", "[]int", "map[string][]string", "string", "float64", "[][]int"), 1))
		g.line("if e%d != nil { %s }", g.names, g.returning())
		g.declare(name, "[]byte")
	case 8:
		g.line("%s, e%d := time.Parse(%q, %s)", name, g.names, "2006-01-02", pick(g, g.expr("string", 1), `"2024-02-29"`))
		g.line("if e%d == nil {", g.names)
		if g.inRun() {
			g.line("\tout = append(out, %s)", pick(g, name+".Year()", name+".AddDate(0, 1, 0).Format(time.RFC3339)", name+".Weekday().String()", name+".Unix()"))
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
			g.line("if len(%s) > 1 { %s = %s }", v.name, v.name, pick(g, v.name+"[:len("+v.name+")-1]", v.name+"[1:]", "append("+v.name+"[:1], "+v.name+"[2:]...)"))
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
	typ := pick(g, "[]int", "[]string", "[]float64", "[]bool", "[][]int", "map[string]int", "map[string]float64", "map[string]any", "map[int]string", "map[string]bool", "map[string][]string", "[]map[string]any")
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
		stmt = pick(g, place+"++", place+"--", place+" += "+g.calm(elem), place+" *= "+g.calm(elem), place+" -= "+g.calm(elem))
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
		if known := slices.DeleteFunc(slices.Clone(g.scopes[len(g.scopes)-1]), func(v local) bool { return v.typ != "bool" || v.fixed }); len(known) > 0 && g.one(2) {
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
		if known := slices.DeleteFunc(slices.Clone(top), func(v local) bool { return v.typ != t || v.fixed }); len(known) > 0 && g.one(2) {
			name = pick(g, known...).name // declared before in this block, and assigned now
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

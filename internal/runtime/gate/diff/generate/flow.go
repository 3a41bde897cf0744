package generate

import (
	"fmt"
	"strings"
)

// A flow writes a function from random statements: all kinds of loops with labels, switches, gotos, defers, panics,
// closures. Steps are counted and only functions written before are called, so every program ends.
type flow struct {
	*gen
	b      strings.Builder
	depth  int
	budget int
	// labels are those of the enclosing loops, "" for a loop without one. A function literal starts an empty list.
	labels []string
	used   map[string]bool
	breaks int      // enclosing loops and switches inside the innermost function literal
	loops  int      // enclosing loops inside the innermost function literal
	vars   []string // of type int, in scope
	fixed  []string // of type int, in scope, read only
	calls  []string // functions of type func(int) int that may be called
	lits   int      // enclosing function literals
	result string   // operand of return statements
}

// flowFunction adds a function that may call those in calls, and returns its name.
func (g *gen) flowFunction(calls []string) string {
	name := g.fresh("flow") + mark
	f := &flow{gen: g, budget: 12 + g.IntN(25), used: map[string]bool{},
		vars: []string{"x", "y", "arr[1]", "st.n", "pp.n", "*ip"}, fixed: []string{"p", "len(fs)", "m[1]"},
		calls: calls, result: "x"}
	f.result = pick(g, "", "x + y", "p", pick(g, append(calls, "neg"+mark)...)+"(x)")
	fmt.Fprintf(&f.b, "func %s(p int) (x int) {\n\ty, arr, fs, m := p+1, [3]int{1, 2, 3}, []func() int(nil), map[int]int{1: p}\n\tst := struct{ n, k int }{p, 2}\n\tpp := &st\n\tip := &arr[2]\n\t_, _ = pp, ip\n", name)
	f.line("step%s()", mark)
	f.b.WriteString("\tdefer func() { log" + mark + "(\"" + name + "\", fmt.Sprint(x, y, arr, st, len(fs), m)) }()\n")
	f.block()
	for f.budget > 0 {
		f.block()
	}
	f.b.WriteString("\tfor _, f := range fs {\n\t\tx += f()\n\t}\n\treturn x*31 + y\n}\n")
	g.add("%s", f.b.String())
	return name
}

// line writes one line of the function body.
func (f *flow) line(format string, args ...any) { fmt.Fprintf(&f.b, "\t"+format+"\n", args...) }

// block writes some statements. Variables declared in it are out of scope after it.
func (f *flow) block() {
	vars, fixed := len(f.vars), len(f.fixed)
	f.depth++
	for range 1 + f.IntN(4) {
		f.statement()
	}
	f.depth--
	f.vars, f.fixed = f.vars[:vars:vars], f.fixed[:fixed:fixed]
}

// expr writes an expression of type int, nested at most depth levels.
func (f *flow) expr(depth int) string {
	if depth <= 0 || f.percent(30) {
		return pick(f.gen, pick(f.gen, f.vars...), pick(f.gen, f.vars...), pick(f.gen, f.fixed...),
			fmt.Sprint(f.IntN(9)))
	}
	a, b := f.expr(depth-1), f.expr(depth-1)
	switch f.IntN(12) {
	case 0:
		return "(" + a + " - " + b + ")"
	case 1:
		return "(" + a + " * " + b + " % 1009)"
	case 2:
		return "(" + a + " ^ " + b + ")"
	case 3:
		return "(" + a + " / (1 + " + b + "&3))"
	case 4:
		return "min(" + a + ", " + b + ", 50)"
	case 5:
		return "(" + a + " << (" + b + " & 7) % 4099)"
	case 6:
		if len(f.calls) > 0 && f.loops < 2 {
			return pick(f.gen, f.calls...) + "(" + a + ")"
		}
	case 7:
		return "arr[" + a + "&1]"
	case 8:
		return "bump" + mark + "(&" + pick(f.gen, "x", "y", "arr[0]", "st.k") + ", " + a + ")"
	}
	return "(" + a + " + " + b + ")"
}

// cond writes an expression of type bool.
func (f *flow) cond() string {
	a, b := f.expr(1), f.expr(1)
	return pick(f.gen, a+"%2 == 0", a+" < "+b, a+" != "+b, a+" > 3 && "+b+"%3 != 1", a+"&1 == 0 || "+b+" < 5",
		"!("+a+" >= "+b+")")
}

// statement writes one statement. When the budget is used up it writes only a log, so nesting ends.
func (f *flow) statement() {
	if f.budget--; f.budget < -40 || f.depth > 5 {
		f.line("log%s(fmt.Sprint(%s))", mark, pick(f.gen, f.vars...))
		return
	}
	statements := []func(){f.assign, f.assign, f.assign, f.declare, f.ifElse, f.ifElse, f.loop, f.loop, f.loop,
		f.rangeFunc, f.rangeFunc, f.switches, f.switches,
		f.deferred, f.literal, f.attempted, f.jump, f.jump, f.gotos, f.closure, f.selects, f.parallel}
	pick(f.gen, statements...)()
}

// assign writes an assignment to one variable, or a log of some expressions.
func (f *flow) assign() {
	v := pick(f.gen, f.vars...)
	switch f.IntN(6) {
	case 0:
		f.line("%s += %s", v, f.expr(2))
	case 1:
		f.line("%s++", v)
	case 2:
		f.line("%s ^= %s", v, f.expr(1))
	case 3:
		f.line("m[%s&3] %s %s", f.expr(1), pick(f.gen, "=", "+=", "-="), f.expr(1))
	case 4:
		f.line("log%s(fmt.Sprint(%s, %s))", mark, f.expr(1), f.cond())
	default:
		f.line("%s = %s", v, f.expr(2))
	}
}

// parallel writes an assignment whose operands depend on each other.
func (f *flow) parallel() {
	switch f.IntN(3) {
	case 0:
		f.line("x, y = y, x+%s", f.expr(1))
	case 1:
		f.line("arr[x&1], x = x, arr[y&1]")
	case 2:
		f.line("y, arr[bump%s(&x, 1)&1], st.n = bump%[1]s(&y, 2), x, y", mark)
	}
}

// declare writes the declaration of a variable, or of one that hides another.
func (f *flow) declare() {
	name := f.fresh("v")
	if f.percent(20) {
		if f.depth < 2 {
			return
		}
		f.line("if y := %s; y%%3 < 2 && %s {", f.expr(1), f.cond())
		f.block()
		f.line("}")
		return
	}
	f.line("%s := %s", name, f.expr(2))
	f.line("_ = %s", name)
	f.vars = append(f.vars, name)
}

// ifElse writes an if statement.
func (f *flow) ifElse() {
	f.line("if %s {", f.cond())
	f.block()
	switch f.IntN(3) {
	case 0:
		f.line("} else {")
		f.block()
	case 1:
		f.line("} else if v := %s; v > 3 {", f.expr(1))
		f.block()
	}
	f.line("}")
}

// switches writes a switch over values or conditions.
func (f *flow) switches() {
	f.breaks++
	defer func() { f.breaks-- }()
	if f.percent(50) {
		f.line("switch v := %s; v %% 4 {", f.expr(1))
		for i := range f.IntN(4) {
			f.line("case %d, %d:", i, -i-4)
			f.block()
			if f.percent(25) {
				f.line("fallthrough")
			}
			f.line("case %d:", i+10)
		}
	} else {
		f.line("switch {")
		for range f.IntN(3) {
			f.line("case %s:", f.cond())
			f.block()
		}
	}
	if f.percent(50) {
		f.line("default:")
		f.block()
	}
	f.line("}")
}

// inLiteral writes statements inside a function literal, which break and continue cannot leave.
func (f *flow) inLiteral(write func()) {
	labels, breaks, loops := f.labels, f.breaks, f.loops
	f.labels, f.breaks, f.loops = nil, 0, 0
	f.lits++
	write()
	f.lits--
	f.labels, f.breaks, f.loops = labels, breaks, loops
}

// deferred writes a defer statement, some of which recover.
func (f *flow) deferred() {
	if f.percent(30) {
		f.line("defer log%s(\"defer\", fmt.Sprint(%s))", mark, f.expr(1))
		return
	}
	f.line("defer func(q int) {")
	if f.percent(30) {
		f.line("if e := recover(); e != nil {\n\t\tlog%s(\"recovered\", fmt.Sprint(e))\n\t\tx += 7\n\t}", mark)
	}
	f.inLiteral(f.block)
	f.line("log%s(fmt.Sprint(\"q\", q))\n\t}(%s)", mark, f.expr(1))
}

// literal writes a function literal that is called at once.
func (f *flow) literal() {
	f.line("func() {")
	f.inLiteral(f.block)
	f.line("}()")
}

// attempted writes statements that may panic, within try.
func (f *flow) attempted() {
	f.line("try%s(\"flow\", func() {", mark)
	f.inLiteral(func() {
		f.block()
		f.line("if %s {\n\t\t%s\n\t}", f.cond(), pick(f.gen, "panic(fmt.Sprint(\"p\", x))", "panic(errors.New(\"e\"))",
			"arr[x&3+1]++", "x /= y & 1", "var none map[string]int\n\t\tnone[\"a\"] = x",
			"pp := (*struct{ n int })(nil)\n\t\tpp.n = y", "sink"+mark+" = any(x).(string)", "fs[x&1+len(fs)]()"))
	})
	f.line("})")
}

// closure writes a function literal that is stored and called later.
func (f *flow) closure() {
	f.line("fs = append(fs, func() int {")
	f.line("%s += %s", pick(f.gen, f.vars...), pick(f.gen, append(f.fixed, "1")...))
	f.line("return %s\n\t})", pick(f.gen, append(f.fixed, f.vars...)...))
	if f.percent(50) {
		f.line("y += fs[len(fs)-1]()")
	}
}

// selects writes a select with a default on a channel of its own.
func (f *flow) selects() {
	c := f.fresh("c")
	f.line("%s := make(chan int, %d)", c, f.IntN(2))
	f.breaks++
	f.line("select {\ncase %s <- %s:", c, f.expr(1))
	f.block()
	f.line("case v, ok := <-%s:\n\t\tlog%s(fmt.Sprint(v, ok))", c, mark)
	f.line("default:")
	f.block()
	f.line("}")
	f.breaks--
}

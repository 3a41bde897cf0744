package generate

import (
	"fmt"
	"go/types"
	"strings"
)

// writeMethods writes the bodies of all declared methods. They log their arguments, change the value of a pointer
// receiver, and create results.
func (g *gen) writeMethods() {
	for _, d := range g.named {
		if d.params != "" {
			for _, m := range d.methods {
				g.add("%s {\n%s}\n", m.head(d), g.genericBody(d, m))
			}
			continue
		}
		t := g.pkg.Scope().Lookup(d.name).Type()
		for _, m := range d.methods {
			g.add("%s {\n%s}\n", m.head(d), g.methodBody(t, d, m))
		}
	}
}

// signatureOf returns the type of a declared method.
func (g *gen) signatureOf(d *declaration, m *method) *types.Signature {
	named := g.pkg.Scope().Lookup(d.name).Type().(*types.Named)
	for f := range named.Methods() {
		if f.Name() == m.name {
			return f.Signature()
		}
	}
	panic("generate: no method " + m.name)
}

// methodBody writes a method of a type that is not generic.
func (g *gen) methodBody(t types.Type, d *declaration, m *method) string {
	self := g.show(t) + "(v)"
	var b strings.Builder
	if m.pointer {
		self = g.show(t) + "(*v)"
		if g.percent(50) {
			self = g.show(types.NewPointer(t)) + "(v)"
		}
	}
	made := fmt.Sprintf("func(s string) %s { return %s(new%s(uint64(len(s)), 9), 1) }", d.name, g.maker(t), mark)
	if body := g.calledBody(d, m, self, made); body != "" {
		return body
	}
	fmt.Fprintf(&b, "\tlog%s(%q, %s)\n", mark, d.name+"."+m.name, self)
	sig := g.signatureOf(d, m)
	for i := range sig.Params().Len() {
		if g.percent(70) {
			fmt.Fprintf(&b, "\tlog%s(%s(p%d))\n", mark, g.show(sig.Params().At(i).Type()), i)
		}
	}
	fmt.Fprintf(&b, "\tq := new%s(%d, 15)\n\tq.n(2)\n", mark, g.IntN(100))
	if m.pointer {
		fmt.Fprintf(&b, "\t*v = %s(q, 1)\n", g.maker(t))
	} else if g.percent(30) {
		fmt.Fprintf(&b, "\tv = %s(q, 1)\n\tsink%s = v\n", g.maker(t), mark)
	}
	b.WriteString(g.returns(sig))
	return b.String()
}

// returns writes a return statement with new values.
func (g *gen) returns(sig *types.Signature) string {
	var results []string
	for v := range sig.Results().Variables() {
		results = append(results, g.maker(v.Type())+"(q, 1)")
	}
	if len(results) == 0 {
		return ""
	}
	return "\treturn " + strings.Join(results, ", ") + "\n"
}

// genericBody writes a method of a generic type, which cannot know its type arguments.
func (g *gen) genericBody(d *declaration, m *method) string {
	const self = `fmt.Sprintf("%T", v)`
	if body := g.calledBody(d, m, self, "func(string) (z "+d.self+") { return }"); body != "" {
		return body
	}
	sig := g.signatureOf(d, m)
	body := fmt.Sprintf("\tvar a A\n\tlog%s(%q, %s, scrub%s(fmt.Sprintf(\"%%T %%T\", a, &a)))\n\tq := new%s(3, 15)\n\tq.n(2)\n", mark, d.name+"."+m.name, self, mark, mark)
	return body + g.returns(sig)
}

// methodCalls writes calls of declared and promoted methods of t, each in a random one of the forms that the language
// has.
func (g *gen) methodCalls(t types.Type) string {
	set := types.NewMethodSet(t)
	pointer := types.NewMethodSet(types.NewPointer(t))
	if types.IsInterface(t) {
		pointer = set
	}
	var b strings.Builder
	b.WriteString(g.fill("\tv := @mkT\n\tlog"+mark+"(@shT(v))\n", map[string]types.Type{"T": t}))
	var methods []*types.Selection
	for m := range pointer.Methods() {
		if callable(m.Obj()) {
			methods = append(methods, m)
		}
	}
	for range min(4, len(methods)) {
		sel := pick(g, methods...)
		byValue := set.Lookup(sel.Obj().Pkg(), sel.Obj().Name()) != nil
		fmt.Fprintf(&b, "\ttry%s(%q, func() {\n%s\t})\n", mark, sel.Obj().Name(),
			g.methodCall(t, sel.Obj().Name(), sel.Obj().Type().(*types.Signature), byValue))
	}
	b.WriteString(g.fill("\tlog"+mark+"(@shT(v))\n", map[string]types.Type{"T": t}))
	return b.String()
}

// methodCall writes one call of a method: directly, through a method value or expression, through an interface, or
// deferred. Some forms change the value between the evaluation of the method and the call.
func (g *gen) methodCall(t types.Type, name string, sig *types.Signature, byValue bool) string {
	text := typeText(t)
	args := g.arguments(sig)
	if sig.Variadic() && g.percent(30) {
		args[len(args)-1] = strings.TrimSuffix(args[len(args)-1], "...")
		last := sig.Params().At(sig.Params().Len() - 1).Type().(*types.Slice).Elem()
		args[len(args)-1] = g.maker(last) + "(r, 1), " + g.maker(last) + "(r, 1)"
	}
	list := strings.Join(args, ", ")
	self := strings.Join(append([]string{"v"}, args...), ", ")
	ptr := strings.Join(append([]string{"&v"}, args...), ", ")
	change := "v = " + g.maker(t) + "(r, 2)"
	ways := []string{"v." + name + "(" + list + ")"}
	if !types.IsInterface(t) {
		ways = append(ways, "(&v)."+name+"("+list+")", "(*"+text+")."+name+"("+ptr+")")
	}
	var before string
	switch g.IntN(8) {
	case 0:
		before = "\t\tf := v." + name + "\n\t\t" + change + "\n"
		ways = []string{"f(" + list + ")"}
	case 1:
		if !types.IsInterface(t) {
			before = "\t\tp := &v\n\t\tf := p." + name + "\n\t\t" + change + "\n"
			ways = []string{"f(" + list + ")"}
		}
	case 2:
		if byValue {
			ways = []string{"(" + text + ")." + name + "(" + self + ")"}
		}
	case 3:
		recv := "&v"
		if byValue {
			recv = "v"
		}
		before = "\t\tvar i interface{ " + name + signatureText(sig) + " } = " + recv + "\n\t\t" + change + "\n"
		ways = []string{"i." + name + "(" + list + ")"}
		if g.percent(30) {
			before += "\t\tf := i." + name + "\n\t\ti = nil\n"
			ways = []string{"f(" + list + ")"}
		}
	case 4:
		return "\t\tdefer v." + name + "(" + list + ")\n\t\t" + change + "\n\t\tchurn" + mark + "(9)\n"
	case 5:
		return "\t\tfor range 2 {\n\t\t\tdefer func() { _ = recover() }()\n\t\t\tdefer v." + name + "(" + list +
			")\n\t\t\t" + change + "\n\t\t}\n"
	}
	return before + g.logCall(pick(g, ways...), sig)
}

// arguments returns new values for a call. A variadic argument is a slice followed by three dots.
func (g *gen) arguments(sig *types.Signature) []string {
	var out []string
	for i := range sig.Params().Len() {
		a := g.maker(sig.Params().At(i).Type()) + "(r, 1)"
		if sig.Variadic() && i == sig.Params().Len()-1 {
			a += "..."
		}
		out = append(out, a)
	}
	return out
}

// logCall writes a call that logs its results.
func (g *gen) logCall(call string, sig *types.Signature) string {
	n := sig.Results().Len()
	if n == 0 {
		return "\t\t" + call + "\n"
	}
	var names, shows []string
	for i := range n {
		name := fmt.Sprintf("r%d", i)
		names = append(names, name)
		shows = append(shows, g.show(sig.Results().At(i).Type())+"("+name+")")
	}
	return "\t\t" + strings.Join(names, ", ") + " := " + call + "\n\t\tlog" + mark + "(" + strings.Join(shows, ", ") +
		")\n"
}

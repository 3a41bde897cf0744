package generate

import (
	"fmt"
	"go/types"
	"strings"
)

// literals writes composite literals with elided types, and a conversion to a struct without tags.
func literals(g *gen, t types.Type) string {
	st := t.Underlying().(*types.Struct)
	first := ""
	for f := range st.Fields() {
		if f.Name() != "_" {
			first = f.Name() + ": " + g.maker(f.Type()) + "(r, 1)"
			break
		}
	}
	body := strings.ReplaceAll(`
	list := []@T{{}, {FIRST}}
	pointers := []*@T{{FIRST}, nil, {}}
	named := map[string]*@T{"a": {FIRST}}
	fixed := [...]@T{2: {FIRST}}
	deep := [][]map[string]@T{{{"x": {FIRST}}}, {}}
	pair := struct{ A, B *@T }{&@T{FIRST}, &fixed[2]}
	churnø(9)
	logø(@shT(list[1]), @shT(*pointers[0]), @shT(*pointers[2]), @shT(*named["a"]), @shT(fixed[2]), strconv.Itoa(len(fixed)), @shT(deep[0][0]["x"]), @shT(*pair.A))
	*pair.B = list[0]
	logø(@shT(fixed[2]))
`, "FIRST", first)
	bare := types.NewStruct(fieldsOf(st), nil)
	return body + fmt.Sprintf(
		"\ttype bare %s\n\tv := bare(@mkT)\n\tw := (@T)(v)\n\tp := (*bare)(&w)\n\t*p = bare(@mkT)\n\tlogø(@shT((@T)(v)), @shT(w), fmt.Sprintf(\"%%T %%T\", v, p))\n", typeText(bare))
}

// fieldsOf returns the fields of a struct.
func fieldsOf(st *types.Struct) []*types.Var {
	var out []*types.Var
	for f := range st.Fields() {
		out = append(out, f)
	}
	return out
}

// constraints writes generic functions whose type parameters must have a method of t or the underlying type of t.
func constraints(g *gen, t types.Type) string {
	body := "\tv := @mkT\n"
	if text := coreConstraint(t); text != "" {
		name := g.fresh("core") + mark
		g.add("%s", g.fill("func "+name+"[X "+text+
			"](x X, more ...X) (out @T, list []X) {\n\tvar z X\n\tfor _, m := range append(more, x) {\n\t\tz = m\n\t\tlist = append(list, X(z))\n\t}\n"+
			"\tlogø(fmt.Sprintf(\"%T %T\", z, list))\n\treturn (@T)(z), list\n}\n", map[string]types.Type{"T": t}))
		body += "\to, list := " + name + "(v, @mkT)\n\tlogø(@shT(o), strconv.Itoa(len(list)), @shT(list[0]))\n"
	}
	set := types.NewMethodSet(types.NewPointer(t))
	if types.IsInterface(t) {
		set = types.NewMethodSet(t)
	}
	for m := range set.Methods() {
		sig := m.Obj().Type().(*types.Signature)
		if !callable(m.Obj()) || sig.Params().Len() > 0 && g.percent(40) {
			continue
		}
		name, head := g.fresh("with")+mark, "[X any, P interface{ *X; "+m.Obj().Name()+signatureText(sig)+" }](x X)"
		call, use := "P(&x)."+m.Obj().Name(), name+"(v)"
		if types.IsInterface(t) {
			head, call = "[X interface{ "+m.Obj().Name()+signatureText(sig)+" }](x X)", "x."+m.Obj().Name()
		}
		g.add("func %s%s {\n\tr := new%s(5, 60)\n\tr.n(2)\n\tf := %s\n\ttry%[3]s(%[5]q, func() {\n%s\t})\n\t%s\n}\n",
			name, head, mark, call, m.Obj().Name(), g.logCall("f("+join(g.arguments(sig))+")", sig),
			pick(g, "log"+mark+"(fmt.Sprintf(\"%T\", x))", "sink"+mark+" = x", "churn"+mark+"(3)"))
		body += "\ttryø(\"with\", func() { " + use + " })\n"
	}
	return body + "\tlogø(@shT(v))\n"
}

// coreConstraint returns a constraint that t satisfies by its underlying type, or "" if there is none.
func coreConstraint(t types.Type) string {
	if _, hidden := hostOf(t); hidden || types.IsInterface(t) {
		return ""
	}
	text := typeText(t.Underlying())
	if basicOf(t, types.IsInteger) {
		return "~" + text + " | ~float32"
	}
	return "interface{ ~" + text + " }"
}

package generate

import (
	"fmt"
	"go/types"
	"strings"
)

// operate adds a section that applies a random operation to a random type of the pool.
func (g *gen) operate() {
	for range 20 {
		op := pick(g, operations...)
		t := pick(g, g.pool...)
		bound := map[string]types.Type{"T": t, "U": pick(g, g.pool...)}
		if !op.on(t) {
			continue
		}
		body := op.text
		switch u := t.Underlying().(type) {
		case *types.Map:
			bound["K"], bound["E"] = u.Key(), u.Elem()
		case *types.Signature:
			body = g.signatureCalls(u, body)
		case interface{ Elem() types.Type }:
			bound["E"] = u.Elem()
		}
		if op.write != nil {
			body = op.write(g, t)
		}
		if body == "" {
			continue
		}
		g.section(op.name+" of "+kindName(t), g.fill(body, bound))
		return
	}
}

// kindName names the kind of t's underlying type.
func kindName(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return strings.TrimLeft(strings.TrimRight(u.Name(), "0123456789"), "u")
	case *types.Signature:
		return "func"
	default:
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", u), "*types."))
	}
}

// An operation is something that a program does with a type. Its text is a template; see fill.
type operation struct {
	name string
	on   func(types.Type) bool
	text string
	// write replaces text if that depends on the type. It returns "" if the operation does not apply to the type.
	write func(*gen, types.Type) string
}

func always(types.Type) bool       { return true }
func comparable(t types.Type) bool { return types.Comparable(t) }

// kind reports whether the underlying type of t is a T.
func kind[T types.Type](t types.Type) bool {
	_, ok := t.Underlying().(T)
	return ok
}

// concrete reports whether t is not an interface.
func concrete(t types.Type) bool { return !types.IsInterface(t) }

// hasMethods reports whether values of t, or variables of it, have methods.
func hasMethods(t types.Type) bool {
	return types.NewMethodSet(t).Len() > 0 || concrete(t) && !kind[*types.Pointer](t) &&
		types.NewMethodSet(types.NewPointer(t)).Len() > 0
}

// streams reports whether values of t or pointers to them are writers or readers.
func streams(t types.Type) bool {
	set := types.NewMethodSet(types.NewPointer(t))
	return concrete(t) && (set.Lookup(nil, "Write") != nil || set.Lookup(nil, "Read") != nil)
}

// basicOf reports whether t is a basic type with one of these properties.
func basicOf(t types.Type, info types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0
}

func ordered(t types.Type) bool { return basicOf(t, types.IsOrdered) }
func integer(t types.Type) bool { return basicOf(t, types.IsInteger) }

// isKey reports whether all values of t can be map keys.
func isKey(t types.Type) bool { return types.Comparable(t) && !holdsInterface(t) }

// signatureCalls writes calls of a function value.
func (g *gen) signatureCalls(sig *types.Signature, text string) string {
	if text != "" {
		return text
	}
	body := "\tf := @mkT\n\ttry" + mark + "(\"call\", func() {\n" + g.logCall("f("+join(g.arguments(sig))+")", sig) +
		"\t})\n"
	body += "\tg := f\n\tlist := []@T{f, nil, g}\n\tfor _, h := range list {\n\t\ttry" + mark +
		"(\"call\", func() {\n" + g.logCall("h("+join(g.arguments(sig))+")", sig) + "\t\t})\n\t}\n"
	body += "\ttry" + mark + "(\"defer\", func() {\n\t\tvar none @T\n\t\tdefer none(" + join(g.arguments(sig)) +
		")\n\t\tlog" + mark + "(\"before\")\n\t})\n"
	return body
}

// join joins expressions with commas.
func join(list []string) string {
	out := ""
	for i, s := range list {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}

// typeSwitch writes a switch over types of the pool for values of several types.
func typeSwitch(g *gen, t types.Type) string {
	var cases string
	var list []types.Type
	for range 6 {
		c := pick(g, g.pool...)
		dup := false
		for _, have := range list {
			dup = dup || types.Identical(have, c)
		}
		if dup {
			continue
		}
		list = append(list, c)
		cases += fmt.Sprintf("\t\tcase %s:\n\t\t\tlog%s(%q, %s(x))\n", typeText(c), mark, typeText(c), g.show(c))
		if g.percent(15) {
			cases += "\t\tcase interface{ String() string }:\n\t\t\tlog" + mark + "(\"stringer\", x.String())\n"
			break
		}
	}
	values := "@mkT, @mkU, any(nil), 7, \"s\""
	for range 2 {
		values += ", " + g.maker(pick(g, g.pool...)) + "(r, 1)"
	}
	return "\tfor _, v := range []any{" + values + "} {\n\t\tswitch x := v.(type) {\n" + cases +
		"\t\tcase nil:\n\t\t\tlog" + mark + "(\"nil\")\n\t\tdefault:\n\t\t\tlog" + mark +
		"(fmt.Sprintf(\"other %T\", x))\n\t\t}\n\t}\n"
}

// assertions writes assertions of an interface to types and interfaces.
func assertions(g *gen, t types.Type) string {
	body := "\tvar v any = @mkT\n"
	for range 3 {
		c := pick(g, g.pool...)
		body += fmt.Sprintf("\tif x, ok := v.(%s); ok {\n\t\tlog%s(\"is\", %s(x))\n\t} else {\n\t\tlog%s(\"is not\", %s(x))\n\t}\n", typeText(c), mark, g.show(c), mark, g.show(c))
		body += fmt.Sprintf("\ttry%s(\"assertion\", func() { log%s(%s(v.(%s))) })\n", mark, mark, g.show(c),
			typeText(c))
	}
	return body
}

// conversions writes conversions between t and types of the pool.
func conversions(g *gen, t types.Type) string {
	body := ""
	for _, u := range append(g.pool, t.Underlying(), types.NewSlice(types.Typ[types.Byte]),
		types.NewSlice(types.Typ[types.Rune]), types.Typ[types.String], types.Typ[types.Uint8], types.Typ[types.Int]) {
		if _, hidden := hostOf(u); hidden && u == t.Underlying() || types.Identical(t, u) ||
			!types.ConvertibleTo(t, u) {
			continue
		}
		body += fmt.Sprintf("\ttry%s(\"conversion\", func() {\n\t\tv := @mkT\n\t\tlog%s(%s((%s)(v)))\n\t\tvar x any = (%s)(v)\n\t\tlog%s(fmt.Sprintf(\"%%T\", x))\n\t})\n", mark, mark, g.show(u), typeText(u), typeText(u), mark)
		if types.ConvertibleTo(u, t) {
			body += fmt.Sprintf("\ttry%s(\"and back\", func() { log%s(@shT((@T)((%s)(@mkT)))) })\n", mark, mark,
				typeText(u))
		}
	}
	return body
}

// fields writes uses of the fields of a struct: reading, changing, taking addresses, and access through pointers.
func fields(g *gen, t types.Type) string {
	st := t.Underlying().(*types.Struct)
	body := "\tv, w := @mkT, @mkT\n\tp := &v\n\tlist := []@T{w, v}\n\tm := map[string]@T{\"a\": v}\n\tmp := map[string]*@T{\"a\": &list[0]}\n"
	n := 0
	for f := range st.Fields() {
		if f.Name() == "_" || n > 4 {
			continue
		}
		n++
		sh, mk := g.show(f.Type()), g.maker(f.Type())+"(r, 1)"
		body += fmt.Sprintf("\tq%d := &v.%s\n\tv.%[2]s = %s\n\tlog%s(%s(*q%[1]d), %[5]s(p.%[2]s), %[5]s(list[1].%[2]s), %[5]s(m[\"a\"].%[2]s))\n", n, f.Name(), mk, mark, sh)
		body += fmt.Sprintf("\t*q%d = %s\n\tlist[0].%s = *q%[1]d\n\tmp[\"a\"].%[3]s, v.%[3]s = p.%[3]s, mp[\"a\"].%[3]s\n\ttry%s(\"nil map\", func() { mp[\"b\"].%[3]s = p.%[3]s })\n", n, mk, f.Name(), mark)
		if types.Comparable(f.Type()) {
			body += fmt.Sprintf("\ttry%s(\"compare\", func() { log%[1]s(strconv.FormatBool(v.%s == w.%[2]s), strconv.FormatBool(p.%[2]s != v.%[2]s)) })\n", mark, f.Name())
		}
	}
	if n == 0 {
		return ""
	}
	return body + "\tchurn" + mark + "(9)\n\tlog" + mark +
		"(@shT(v), @shT(list[0]), @shT(list[1]), @shT(m[\"a\"]), @shT(*mp[\"a\"]))\n"
}

// promoted writes selections of fields that embedded structs promote.
func promoted(g *gen, t types.Type) string {
	body := ""
	for _, d := range g.named {
		for _, name := range []string{"F0", "F1", "F2", "f0", "f1", "f2", d.name} {
			obj, index, _ := types.LookupFieldOrMethod(t, true, g.pkg, name)
			f, ok := obj.(*types.Var)
			if !ok || len(index) < 2 {
				continue
			}
			body += fmt.Sprintf("\ttry%s(%q, func() {\n\t\tlog%[1]s(%[3]s(v.%[2]s))\n\t\tv.%[2]s = %[4]s(r, 1)\n\t\tp := &v\n\t\tlog%[1]s(%[3]s(p.%[2]s))\n\t})\n", mark, name, g.show(f.Type()), g.maker(f.Type()))
		}
	}
	if body == "" {
		return ""
	}
	return "\tv := @mkT\n" + body + "\tlog" + mark + "(@shT(v))\n"
}

// errorChains writes uses of package errors on a type that implements error.
func errorChains(g *gen, t types.Type) string {
	body := "\tvar err error = @mkT\n\tchain := fmt.Errorf(\"a: %w, %w\", err, errors.New(\"x\"))\n\tjoined := errors.Join(nil, chain, err)\n"
	body += "\ttry" + mark + "(\"text\", func() { log" + mark + "(scrub" + mark +
		"(fmt.Sprintf(\"%v|%s|%q\", chain, joined, err))) })\n"
	for _, c := range g.pool {
		if types.Implements(c, errorType) || types.IsInterface(c) {
			body += fmt.Sprintf("\ttry%s(\"as\", func() {\n\t\tvar x %s\n\t\tok := errors.As(joined, &x)\n\t\tlog%[1]s(strconv.FormatBool(ok), %[3]s(x))\n\t})\n", mark, typeText(c), g.show(c))
		}
		if types.Implements(c, errorType) {
			body += fmt.Sprintf("\ttry%s(\"as type\", func() {\n\t\tx, ok := errors.AsType[%s](joined)\n\t\tlog%[1]s(strconv.FormatBool(ok), %[3]s(x), strconv.FormatBool(errors.Is(chain, x)))\n\t})\n", mark, typeText(c), g.show(c))
		}
	}
	body += "\ttry" + mark + "(\"as other\", func() {\n\t\tvar e error\n\t\tvar i interface{ Is(error) bool }\n\t\tvar u interface{ Unwrap() []error }\n\t\tlog" + mark + "(fmt.Sprint(errors.As(err, &i), errors.As(joined, &e), errors.As(err, &u)), fmt.Sprintf(\"%T\", e))\n\t})\n"
	return body + "\ttry" + mark + "(\"is\", func() { log" + mark +
		"(strconv.FormatBool(errors.Is(joined, err)), strconv.FormatBool(errors.Is(err, errors.ErrUnsupported))) })\n"
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// isError reports whether t implements error.
func isError(t types.Type) bool { return types.Implements(t, errorType) }

// heaps writes a heap and a sort of values. The standard library calls their type's methods.
func heaps(g *gen, t types.Type) string {
	name := g.fresh("heap") + mark
	g.add("%s", g.fill(`type `+name+` []@T

func (h `+name+`) Len() int           { return len(h) }
func (h `+name+`) Less(i, j int) bool { return @shT(h[i]) < @shT(h[j]) }
func (h `+name+`) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *`+name+`) Push(v any)        { *h = append(*h, v.(@T)) }
func (h *`+name+`) Pop() any {
	old := *h
	v := old[len(old)-1]
	*h = old[:len(old)-1]
	return v
}
`, map[string]types.Type{"T": t}))
	return "\th := &" + name +
		"{@mkT, @mkT}\n\theap.Init(h)\n\tfor range 8 {\n\t\theap.Push(h, @mkT)\n\t}\n\tchurnø(30)\n\t(*h)[3] = @mkT\n\theap.Fix(h, 3)\n\tlogø(@shT(heap.Pop(h).(@T)), @shT(heap.Remove(h, 2).(@T)))\n" +
		"\tsort.Sort(sort.Reverse(h))\n\tfor _, v := range *h {\n\t\tlogø(@shT(v))\n\t}\n\tsort.Stable(h)\n\tlogø(@shT((*h)[0]), strconv.FormatBool(sort.IsSorted(h)))\n"
}

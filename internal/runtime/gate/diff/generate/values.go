package generate

import (
	"fmt"
	"go/types"
	"strings"
)

// maker returns the name of the function that creates a value of t: func(r *rng, d int) T, where d bounds the depth.
func (g *gen) maker(t types.Type) string {
	if name := g.makers.At(t); name != nil {
		return name.(string)
	}
	name := g.fresh("mk") + mark
	g.makers.Set(t, name)
	body := g.makerBody(t)
	g.add("func %s(r *rng%s, d int) (v %s) {\n\tif r.spent() || d < 0 {\n\t\treturn\n\t}\n%s\treturn v\n}\n", name,
		mark, typeText(t), body)
	return name
}

// makerBody writes the body of a function that makes values of t. Values get smaller with d, so that recursive types
// end.
func (g *gen) makerBody(t types.Type) string {
	text := typeText(t)
	if h, ok := hostOf(t); ok {
		return "\tv = (" + text + ")(" + h.make + ")\n"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return "\tv = " + basicValue(u, "("+text+")") + "\n"
	case *types.Struct:
		var b strings.Builder
		for f := range u.Fields() {
			if f.Name() != "_" {
				fmt.Fprintf(&b, "\tv.%s = %s(r, d)\n", f.Name(), g.maker(f.Type()))
			}
		}
		return b.String()
	case *types.Pointer:
		return fmt.Sprintf("\tif d == 0 || r.n(5) == 0 {\n\t\treturn\n\t}\n\tp := %s(r, d-1)\n\tv = &p\n",
			g.maker(u.Elem()))
	case *types.Slice:
		return fmt.Sprintf("\tif r.n(5) == 0 {\n\t\treturn %s{}\n\t}\n\tfor range r.n(4) {\n\t\tv = append(v, %s(r, d-1))\n\t}\n", text, g.maker(u.Elem()))
	case *types.Array:
		if u.Len() == 0 { // the Go 1.26 compiler fails on an assignment to an element
			return ""
		}
		return fmt.Sprintf("\tfor i := range v {\n\t\tv[i] = %s(r, d)\n\t}\n", g.maker(u.Elem()))
	case *types.Map:
		size := "r.n(4)"
		// With more than one key the order would depend on addresses.
		if addressOrdered(u.Key()) {
			size = "r.n(2)"
		}
		return fmt.Sprintf("\tif r.n(6) == 0 {\n\t\treturn\n\t}\n\tv = make(%s)\n\tfor range %s {\n\t\tv[%s(r, d-1)] = %s(r, d-1)\n\t}\n", text, size, g.keyMaker(u.Key()), g.maker(u.Elem()))
	case *types.Chan:
		elem := typeText(u.Elem())
		return fmt.Sprintf("\tif d == 0 {\n\t\treturn\n\t}\n\tc := make(chan (%s), 1+r.n(3))\n\tfor range r.n(4) {\n\t\tselect {\n\t\tcase c <- %s(r, d-1):\n\t\tdefault:\n\t\t}\n\t}\n\tv = c\n", elem, g.maker(u.Elem()))
	case *types.Signature:
		return g.funcMaker(u)
	case *types.Interface:
		return g.ifaceMaker(t)
	}
	panic("generate: no value of " + text)
}

// funcMaker writes a function literal that logs its arguments and creates its results.
func (g *gen) funcMaker(sig *types.Signature) string {
	var b strings.Builder
	b.WriteString("\tif r.n(6) == 0 {\n\t\treturn\n\t}\n\tseed := r.next()\n")
	b.WriteString("\tv = func" + signatureText(sig) + " {\n\t\tq := new" + mark + "(seed, 12)\n")
	for i := range sig.Params().Len() {
		fmt.Fprintf(&b, "\t\tlog%s(\"p%d\", %s(p%d))\n", mark, i, g.show(sig.Params().At(i).Type()), i)
	}
	b.WriteString("\t\tq.n(3)\n")
	if n := sig.Results().Len(); n > 0 {
		results := make([]string, n)
		for i := range results {
			results[i] = g.maker(sig.Results().At(i).Type()) + "(q, d-1)"
		}
		b.WriteString("\t\treturn " + strings.Join(results, ", ") + "\n")
	}
	b.WriteString("\t}\n")
	return b.String()
}

// signatureText writes a signature with parameters p0, p1, and so on.
func signatureText(sig *types.Signature) string {
	var in, out []string
	for i := range sig.Params().Len() {
		t := typeText(sig.Params().At(i).Type())
		if sig.Variadic() && i == sig.Params().Len()-1 {
			t = "..." + typeText(sig.Params().At(i).Type().(*types.Slice).Elem())
		}
		in = append(in, fmt.Sprintf("p%d %s", i, t))
	}
	for i := range sig.Results().Len() {
		out = append(out, typeText(sig.Results().At(i).Type()))
	}
	return "(" + strings.Join(in, ", ") + ") (" + strings.Join(out, ", ") + ")"
}

// implementers returns at most seven types of the pool that implement an interface.
func (g *gen) implementers(t types.Type) []types.Type {
	iface := t.Underlying().(*types.Interface)
	var out []types.Type
	add := func(c types.Type) {
		if types.IsInterface(c) || !types.Implements(c, iface) || len(out) >= 7 {
			return
		}
		for _, have := range out {
			if types.Identical(have, c) {
				return
			}
		}
		out = append(out, c)
	}
	if iface.Empty() {
		add(types.Typ[types.String])
		add(types.Typ[types.Int])
	}
	for _, c := range g.pool {
		if _, ok := c.(*types.Named); ok && !iface.Empty() {
			add(types.NewPointer(c))
		}
		add(c)
	}
	return out
}

// ifaceMaker writes a choice between values of the types that implement an interface, and nil.
func (g *gen) ifaceMaker(t types.Type) string {
	list := g.implementers(t)
	var b strings.Builder
	fmt.Fprintf(&b, "\tswitch r.n(%d) {\n", len(list)+1)
	for i, c := range list {
		fmt.Fprintf(&b, "\tcase %d:\n\t\tv = %s(r, d-1)\n", i, g.maker(c))
	}
	b.WriteString("\t}\n")
	return b.String()
}

// keyMaker returns the name of a function that creates map keys. If the type contains interfaces, it returns only
// hashable values.
func (g *gen) keyMaker(t types.Type) string {
	if !holdsInterface(t) {
		return g.maker(t)
	}
	name := g.fresh("key") + mark
	mk := g.maker(t)
	g.add("func %s(r *rng%s, d int) (v %s) {\n\tfor range 4 {\n\t\tif k := %s(r, d); hashable%s(k) {\n\t\t\treturn k\n\t\t}\n\t}\n\treturn v\n}\n", name, mark, typeText(t), mk, mark)
	return name
}

// basicValue returns an expression for a random value of a basic type.
func basicValue(b *types.Basic, convert string) string {
	switch {
	case b.Info()&types.IsBoolean != 0:
		return convert + "(r.n(2) == 0)"
	case b.Info()&types.IsString != 0:
		return convert + "(r.str())"
	case b.Info()&types.IsFloat != 0:
		return convert + "(r.float())"
	case b.Kind() == types.Complex64:
		return convert + "(complex64(complex(r.float(), r.float())))"
	case b.Info()&types.IsComplex != 0:
		return convert + "(complex(r.float(), r.float()))"
	}
	return convert + "(r.int())"
}

// holdsInterface reports whether values of t contain interfaces other than through pointers.
func holdsInterface(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Interface:
		return true
	case *types.Array:
		return holdsInterface(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if holdsInterface(f.Type()) {
				return true
			}
		}
	}
	return false
}

// addressOrdered reports whether the standard library sorts keys of t by address.
func addressOrdered(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Interface, *types.Pointer, *types.Chan:
		return true
	case *types.Array:
		return addressOrdered(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if addressOrdered(f.Type()) {
				return true
			}
		}
	}
	return false
}

// addressFree reports whether no verb of fmt prints an address for values of t.
func addressFree(t types.Type, seen ...types.Type) bool {
	for _, s := range seen {
		if types.Identical(s, t) {
			return true
		}
	}
	seen = append(seen, t)
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Array:
		return addressFree(u.Elem(), seen...)
	case *types.Slice:
		return addressFree(u.Elem(), seen...)
	case *types.Map:
		return addressFree(u.Key(), seen...) && addressFree(u.Elem(), seen...)
	case *types.Struct:
		for f := range u.Fields() {
			if !addressFree(f.Type(), seen...) {
				return false
			}
		}
		return true
	}
	return false
}

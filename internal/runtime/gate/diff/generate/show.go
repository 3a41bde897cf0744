package generate

import (
	"fmt"
	"go/types"
	"strings"
)

// show returns the name of the function that returns a value of t as text: func(v T) string. The function calls no
// methods, prints no addresses and sorts maps.
func (g *gen) show(t types.Type) string {
	if name := g.shows.At(t); name != nil {
		return name.(string)
	}
	name := g.fresh("show") + mark
	g.shows.Set(t, name)
	body := g.showBody(t)
	g.add("func %s(v %s) string {\n\tif !deeper%s() {\n\t\treturn \"...\"\n\t}\n\tdefer func() { depth%s-- }()\n%s}\n",
		name, typeText(t), mark, mark, body)
	return name
}

// showBody writes the body of a function that shows values of t.
func (g *gen) showBody(t types.Type) string {
	if h, ok := hostOf(t); ok {
		return "\treturn " + h.show + "\n"
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return "\treturn " + basicText(u) + "\n"
	case *types.Struct:
		var b strings.Builder
		b.WriteString("\ts := \"{\"\n")
		for f := range u.Fields() {
			if f.Name() != "_" {
				fmt.Fprintf(&b, "\ts += \" %s:\" + %s(v.%s)\n", f.Name(), g.show(f.Type()), f.Name())
			}
		}
		b.WriteString("\treturn s + \"}\"\n")
		return b.String()
	case *types.Pointer:
		return fmt.Sprintf("\tif v == nil {\n\t\treturn \"nil\"\n\t}\n\treturn \"&\" + %s(*v)\n", g.show(u.Elem()))
	case *types.Slice:
		return fmt.Sprintf("\tif v == nil {\n\t\treturn \"nil\"\n\t}\n\ts := \"[\"\n\tfor i, e := range v {\n\t\tif i == 6 {\n\t\t\ts += \" and more\"\n\t\t\tbreak\n\t\t}\n\t\ts += \" \" + %s(e)\n\t}\n\treturn s + \"]\" + strconv.Itoa(len(v))\n", g.show(u.Elem()))
	case *types.Array:
		return fmt.Sprintf("\ts := \"<\"\n\tfor _, e := range v {\n\t\ts += \" \" + %s(e)\n\t}\n\treturn s + \">\"\n",
			g.show(u.Elem()))
	case *types.Map:
		return fmt.Sprintf("\tif v == nil {\n\t\treturn \"nil\"\n\t}\n\tvar list []string\n\tfuel := fuel%s / (len(v) + 1)\n\tfor k, e := range v {\n\t\tfuel%s = fuel\n\t\ts := %s(k)\n\t\tlist = append(list, s+\":\"+%s(e))\n\t}\n\tfuel%s = fuel\n\tsort.Strings(list)\n\treturn \"map[\" + strings.Join(list, \" \") + \"]\"\n",
			mark, mark, g.show(u.Key()), g.show(u.Elem()), mark)
	case *types.Chan:
		s := "\tif v == nil {\n\t\treturn \"nil\"\n\t}\n\ts := fmt.Sprintf(\"chan %d/%d\", len(v), cap(v))\n"
		if u.Dir() == types.SendRecv {
			s += fmt.Sprintf("\tfor range len(v) {\n\t\te, ok := <-v\n\t\tif !ok {\n\t\t\treturn s + \" closed\"\n\t\t}\n\t\ts += \" \" + %s(e)\n\t\ttry%s(\"send\", func() { v <- e })\n\t}\n", g.show(u.Elem()), mark)
		}
		return s + "\treturn s\n"
	case *types.Signature:
		return "\tif v == nil {\n\t\treturn \"nil\"\n\t}\n\treturn \"func\"\n"
	case *types.Interface:
		var b strings.Builder
		b.WriteString("\tswitch x := any(v).(type) {\n\tcase nil:\n\t\treturn \"nil\"\n")
		for _, c := range g.implementers(t) {
			fmt.Fprintf(&b, "\tcase %s:\n\t\treturn %q + %s(x) + \")\"\n", typeText(c), typeText(c)+"(", g.show(c))
		}
		b.WriteString("\tdefault:\n\t\treturn fmt.Sprintf(\"%T\", x)\n\t}\n")
		return b.String()
	}
	panic("generate: cannot show " + typeText(t))
}

// basicText returns an expression for the text of v, a value of a basic or derived type, without calling its methods.
func basicText(b *types.Basic) string {
	switch {
	case b.Info()&types.IsString != 0:
		return "strconv.Quote(string(v))"
	case b.Info()&types.IsFloat != 0:
		return "strconv.FormatFloat(float64(v), 'g', -1, 64)"
	case b.Info()&types.IsComplex != 0:
		return "fmt.Sprint(complex128(v))"
	case b.Info()&types.IsBoolean != 0:
		return "strconv.FormatBool(bool(v))"
	}
	return "fmt.Sprint(" + b.Name() + "(v))"
}

package generate

import (
	"fmt"
	"strings"
)

// underlying returns a random underlying type for a declaration.
func (g *gen) underlying(d *declaration) string {
	if d.name[0] == 'I' {
		return g.iface()
	}
	params := typeParams(d)
	switch n := g.IntN(20); {
	case n < 11:
		return g.structure(params, 2)
	case n < 13:
		return "map[" + g.typ(params, 1) + "]" + g.typ(params, 2)
	case n < 15:
		return "[]" + g.typ(params, 2)
	case n < 16:
		return fmt.Sprintf("[%d]%s", 1+g.IntN(3), g.typ(params, 2))
	case n < 17:
		return "func" + g.signature(params, 2)
	case n < 18 && len(params) == 0:
		return g.basic()
	case n < 19:
		return "chan " + g.typ(params, 1)
	}
	return g.typ(params, 2)
}

// typeParams returns the names of the type parameters of a declaration.
func typeParams(d *declaration) []string {
	switch {
	case d.params == "":
		return nil
	case strings.HasPrefix(d.params, "[K"):
		return []string{"K", "A"}
	}
	return []string{"A"}
}

// iface writes an interface type with some of the shared methods.
func (g *gen) iface() string {
	var parts []string
	for _, i := range g.Perm(len(g.sigs))[:min(1+g.IntN(2), len(g.sigs))] {
		parts = append(parts, fmt.Sprintf("M%d%s", i, g.sigs[i]))
	}
	if g.percent(20) {
		parts = append(parts, pick(g, "String() string", "Error() string", "error"))
	}
	return "interface{ " + strings.Join(parts, "; ") + " }"
}

// structure writes a struct type with plain, embedded and blank fields and with tags.
func (g *gen) structure(params []string, depth int) string {
	var fields []string
	for i := range g.IntN(5) {
		name := fmt.Sprintf("%s%d", pick(g, "F", "F", "f"), i)
		typ := g.typ(params, depth)
		tag := ""
		if name[0] == 'F' && g.percent(25) {
			tag = " `" + pick(g, `json:"a%d"`, `json:"b%d,omitempty"`, `json:",omitzero"`, `json:"-"`,
				`json:"c%d,string"`, `xml:"d%d,attr"`, `xml:"e>f%d"`, `json:"x" xml:"y%d,omitempty"`) + "`"
			tag = strings.ReplaceAll(tag, "%d", fmt.Sprint(i))
		}
		switch {
		case g.percent(5):
			fields = append(fields, "_ "+g.basic())
		case g.percent(4):
			fields = append(fields, pick(g, embeddedHosts...)+tag)
		case g.percent(18):
			fields = append(fields, pick(g, "", "", "*")+g.reference(params)+tag)
		default:
			fields = append(fields, name+" "+typ+tag)
		}
	}
	return "struct{ " + strings.Join(fields, "; ") + " }"
}

// reference returns a declared type, with type arguments if it is generic.
func (g *gen) reference(params []string) string {
	d := pick(g, g.named...)
	if d.params == "" {
		return d.name
	}
	if d.name[0] == 'G' && len(params) == len(typeParams(d)) && g.percent(60) {
		return d.name + "[" + strings.Join(params, ", ") + "]"
	}
	if len(params) > 0 {
		return pick(g, g.named[0].name,
			g.named[len(g.named)/2].text()[len("type "):len("type ")+len(g.named[len(g.named)/2].name)])
	}
	args := []string{g.leaf(nil)}
	if strings.HasPrefix(d.params, "[K") {
		args = append([]string{pick(g, "string", "int", "bool", "[2]int8", g.named[g.IntN(len(g.named))].name)},
			args...)
	}
	return d.name + "[" + strings.Join(args, ", ") + "]"
}

// basic returns a basic type. Frequent types occur more than once in the list.
func (g *gen) basic() string {
	return pick(g, "int", "int", "string", "string", "string", "bool", "float64", "byte", "rune", "int8", "uint16",
		"int64", "uint64", "float32", "complex128", "uint", "complex64", "uintptr")
}

// leaf returns a type without a further level: a type parameter, a basic type, a host type or a declared one.
func (g *gen) leaf(params []string) string {
	switch {
	case len(params) > 0 && g.percent(40):
		return pick(g, params...)
	case g.percent(40):
		return g.basic()
	case g.percent(15):
		return pick(g, heldHosts...)
	}
	return g.reference(params)
}

// typ writes a random type.
func (g *gen) typ(params []string, depth int) string {
	if depth <= 0 || g.percent(30) {
		return g.leaf(params)
	}
	depth--
	switch g.IntN(13) {
	case 0, 1, 2:
		return "*" + g.typ(params, depth)
	case 3, 4:
		return "[]" + g.typ(params, depth)
	case 5, 6, 7:
		return "map[" + g.typ(params, min(depth, 1)) + "]" + g.typ(params, depth)
	case 8:
		if g.percent(10) { // an array this large is stored outside the slots of a map
			return fmt.Sprintf("[%d]%s", 17+g.IntN(20), pick(g, "string", "int64", "*int", "any"))
		}
		return fmt.Sprintf("[%d]%s", g.IntN(4), g.typ(params, depth))
	case 9:
		return pick(g, "chan ", "chan ", "chan<- ", "<-chan ") + "(" + g.typ(params, depth) + ")"
	case 10:
		return "func" + g.signature(params, depth)
	case 11:
		return g.structure(params, depth)
	}
	return g.iface()
}

// signature writes random parameters and results.
func (g *gen) signature(params []string, depth int) string {
	var in, out []string
	for range g.IntN(3) {
		in = append(in, g.typ(params, depth))
	}
	if g.percent(15) {
		in = append(in, "..."+g.typ(params, depth))
	}
	for range g.IntN(3) {
		out = append(out, g.typ(params, depth))
	}
	for i := range in {
		in[i] = fmt.Sprintf("p%d %s", i, in[i])
	}
	return "(" + strings.Join(in, ", ") + ") (" + strings.Join(out, ", ") + ")"
}

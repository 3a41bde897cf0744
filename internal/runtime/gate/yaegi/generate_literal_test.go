package yaegi_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// literal writes a constant or a literal of a type.
func (g *generator) literal(typ string) string {
	switch typ {
	case "int":
		return pick(g, "0", "1", "2", "3", "7", "-1", "10", "100",
			pick(g, "0x1F", "1_000", "0b11", "math.MaxInt32", "9223372036854775807", "-9223372036854775808",
				"1000000007"))
	case "float64":
		return pick(g, "0.5", "1.5", "2.0", "-3.25", "100.125", "1e3", "2", "0", "10", ".5")
	case "string":
		if g.one(12) {
			return "`raw \\n\n\"text\"`"
		}
		return strconv.Quote(pick(g, "", "a", "b", "n", "abc", "héllo wörld", "12", "x 7", "世界", "2.5", "a,b,,c",
			"\xff\x00z", "line\nnext"))
	case "bool":
		return pick(g, "true", "false")
	case "rune":
		return pick(g, "'\\x41'", "'a'", "'z'", "'é'", "'\\n'", "'世'")
	case "byte":
		return pick(g, "'a'", "'0'", "' '")
	case "any":
		return g.literal(pick(g, "int", "float64", "string", "bool", "rune"))
	case "error":
		return `errors.New("e")`
	}
	return g.container(typ, 0)
}

// container writes a literal of a slice or map.
func (g *generator) container(typ string, depth int) string {
	if g.one(8) {
		return pick(g, typ+"{}", "make("+typ+", 0)", typ+"{}")
	}
	key, elem := "", strings.TrimPrefix(typ, "[]")
	if m, ok := strings.CutPrefix(typ, "map["); ok {
		key, elem, _ = strings.Cut(m, "]")
	} else if g.one(10) {
		return fmt.Sprintf("make(%s, %d)", typ, g.IntN(4))
	}
	var list []string
	for i := range 1 + g.IntN(3) {
		e := g.expr(elem, depth)
		if strings.HasPrefix(elem, "[]") || strings.HasPrefix(elem, "map[") {
			e = g.container(elem, 0)
			if g.one(2) {
				if short, ok := strings.CutPrefix(e, elem+"{"); ok { // with the type elided
					e = "{" + short
				}
			}
		}
		if key != "" {
			k := strconv.Quote(string(rune('a' + i)))
			if key == "int" || key == "rune" {
				k = strconv.Itoa(i)
			}
			e = k + ": " + e
		}
		list = append(list, e)
	}
	return typ + "{" + strings.Join(list, ", ") + "}"
}

// calm writes an expression whose value cannot grow with the rounds of a loop.
func (g *generator) calm(typ string) string {
	switch typ {
	case "int", "float64", "bool", "rune", "byte", "error":
		return g.expr(typ, 1)
	case "string":
		if vs := g.visible("int", false); len(vs) > 0 && g.one(2) {
			return pick(g, "strconv.Itoa("+pick(g, vs...).name+")", `fmt.Sprintf("%d|", `+pick(g, vs...).name+")")
		}
		return g.literal(typ)
	case "any":
		t := pick(g, "int", "float64", "string", "bool", "rune")
		if g.one(5) {
			return g.fromCall()
		}
		return g.calm(t)
	}
	return g.literal(typ)
}

// anySource writes a value of type any for a type assertion.
func (g *generator) anySource() string {
	if vs := g.visible("any", false); len(vs) > 0 && g.one(2) {
		return pick(g, vs...).name
	}
	if vs := g.visible("map[string]any", false); len(vs) > 0 && g.one(2) {
		return fmt.Sprintf("%s[%s]", pick(g, vs...).name, g.literal("string"))
	}
	return g.fromCall()
}

func (g *generator) fromCall() string {
	if vs := g.visible("*recurgent.Call", false); len(vs) > 0 {
		c := pick(g, vs...).name
		return pick(g, fmt.Sprintf("%s.Arg(%d, %q)", c, g.IntN(7), pick(g, "a", "n", "s")),
			fmt.Sprintf("%s.Kwargs[%s]", c, g.literal("string")), c+".Args[0]")
	}
	if g.inRun() {
		return pick(g,
			fmt.Sprintf("call.Arg(%d, %q)", g.IntN(7), pick(g, "a", "n", "s")),
			fmt.Sprintf("call.Args[%d]", g.IntN(3)),
			fmt.Sprintf("call.Kwargs[%s]", g.literal("string")),
			fmt.Sprintf("call.Context[%s]", g.literal("string")))
	}
	return `[]any{1, "a", 2.5, nil, true}[` + pick(g, "0", "1", "2", "3", "4") + "]"
}

// withoutErrors picks a type whose values print no addresses.
func (g *generator) withoutErrors() string {
	return pick(g, slices.DeleteFunc(generatedTypes(), func(t string) bool { return strings.Contains(t, "error") })...)
}

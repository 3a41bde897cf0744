package yaegi_test

import (
	"strings"
)

// expr writes an expression of a type; "error!" is an error that is not nil.
func (g *generator) expr(typ string, depth int) string {
	vs := g.visible(typ, g.one(2)) // few constants: the compiler evaluates expressions of two constants
	if len(vs) > 0 && g.IntN(10) < 5 {
		return pick(g, vs...).name
	}
	if depth <= 0 {
		if len(vs) > 0 && !g.one(3) {
			return pick(g, vs...).name
		}
		if typ == "error!" {
			return `errors.New("e0")`
		}
		return g.literal(typ)
	}
	for _, h := range g.helpers {
		if len(h.results) == 1 && h.results[0] == typ && g.one(5) {
			return g.callOf(h, depth)
		}
	}
	if g.inRun() && g.one(12) {
		switch typ {
		case "string":
			return pick(g, "call.Role", "call.Method")
		case "int":
			return pick(g, "call.Depth", "len(call.Args)", "len(call.Kwargs)")
		}
	}
	if len(g.helpers) > 0 && typ == "string" && g.loops == 0 && g.one(10) {
		return "fmt.Sprint(" + g.callOf(pick(g, g.helpers...), depth-1) + ")"
	}
	if e := g.composed(typ, depth-1); typ == "error!" || !g.one(6) {
		return e
	}
	return g.literal(typ)
}

// composed writes an expression with parts, or "".
func (g *generator) composed(typ string, d int) string {
	e := func(t string) string { return g.expr(t, d) }
	switch typ {
	case "int":
		return pick(g,
			"("+g.variable("int")+pick(g, " + ", " - ", " * ")+e("int")+")",
			g.variable("int")+pick(g, " + ", " - ", " * ", " / ", " % ")+g.literal("int"),
			pick(g, "-", "-", "+")+g.variable("int"),
			"len("+e(pick(g, "string", "[]int", "[]any", "map[string]any", "map[string]int", "[]string"))+")",
			"int("+g.variable("float64")+")", "int("+g.variable("float64")+" * 1.5)",
			g.name("map[string]int", "map[string]int{}")+"["+e("string")+"]",
			g.index("[]int", "int"), g.index("[][]int", "[]int")+"[0]",
			g.name("map[rune]int", "map[rune]int{}")+"["+e("rune")+"]",
			g.name("map[string]map[string]int", "map[string]map[string]int{}")+"["+e("string")+"]["+e("string")+"]",
			"len("+g.name("map[string][]string", "map[string][]string{}")+"["+e("string")+"])",
			"strings.Index("+e("string")+", "+e("string")+")", "strings.Count("+e("string")+", \"a\")",
			"utf8.RuneCountInString("+e("string")+")", "len(strings.Fields("+e("string")+"))")
	case "float64":
		return pick(g,
			"("+g.variable("float64")+pick(g, " + ", " - ", " * ", " / ")+e("float64")+")",
			e("float64")+pick(g, " * ", " / ", " - ")+g.variable("float64"),
			"-"+g.variable("float64"), "float64("+g.variable("int")+")", "float64("+g.variable("int")+") / 2",
			"math.Floor("+e("float64")+")",
			"math.Abs("+e("float64")+")", "math.Max("+e("float64")+", "+e("float64")+")",
			"math.Round("+e("float64")+"*100)/100", "math.Sqrt("+e("float64")+")",
			g.name("map[string]float64", "map[string]float64{}")+"["+e("string")+"]", g.index("[]float64", "float64"),
			"math.Pi * "+g.variable("float64"), "math.Pow(2, 3)", "math.Inf(-1)", "math.NaN()",
			"math.Trunc("+e("float64")+")")
	case "string":
		out := pick(g,
			"strings.ToUpper("+e("string")+")", "strings.TrimSpace("+e("string")+")", "strconv.Itoa("+e("int")+")",
			"string("+g.variable("rune")+")",
			g.name("map[int]string", "map[int]string{}")+"["+e("int")+"]", g.index("[]string", "string"),
			"strconv.FormatFloat("+e("float64")+", 'f', 2, 64)", "strconv.Quote("+e("string")+")",
			"strings.TrimPrefix("+e("string")+", "+e("string")+")",
			"strconv.FormatBool("+e("bool")+")", g.cut(), "time.Now().Format(\"2006-01-02\")",
			"html.EscapeString("+e("string")+")", "url.QueryEscape("+e("string")+")", "path.Base("+e("string")+")",
			"hex.EncodeToString("+e("[]byte")+")", "base64.StdEncoding.EncodeToString("+e("[]byte")+")",
			g.index("[][]string", "[]string")+"[0]", "strings.Trim("+e("string")+", \"a \")",
			"strings.ToLower("+e("string")+")", "path.Join("+e("string")+", "+e("string")+")")
		if g.loops == 0 && g.one(2) {
			out = pick(g, "("+g.variable("string")+" + "+e("string")+")",
				g.variable("string")+" + "+g.literal("string"), "strings.Join("+e("[]string")+", \",\")",
				"fmt.Sprint("+e("any")+", "+e("int")+")", "fmt.Sprintf(\"%v|%v|%5.2f\", "+e("any")+", "+e("[]any")+", "+
					e("float64")+")",
				"fmt.Sprintf(\"%d %s %q %t\", "+e("int")+", "+e("string")+", "+e("string")+", "+e("bool")+")",
				"fmt.Sprintln("+e("map[string]any")+", "+e("rune")+")",
				"fmt.Sprintf(\"%v %v\", "+e("map[string]int")+", "+e("error")+")", "strings.Repeat("+e("string")+", 2)",
				"strings.ReplaceAll("+e("string")+", \"a\", \"bb\")",
				"fmt.Sprintf(\"%c %d %x\", "+e("rune")+", "+e("byte")+", "+e("string")+")",
				"fmt.Sprint("+e("[]int")+", "+e("map[string][]string")+", "+e("[][]int")+")",
				"fmt.Sprintf(\"%T\", "+e(pick(g, generatedTypes()...))+")",
				"fmt.Sprintf(\"%T %#v\", "+e(pick(g, generatedTypes()...))+", "+e(g.withoutErrors())+")")
			if len(g.visible("*regexp.Regexp", false)) > 0 && g.one(2) {
				out = pick(g, "re.ReplaceAllString("+e("string")+", \"#\")", "re.FindString("+e("string")+")")
			}
			if len(g.visible("*strings.Replacer", false)) > 0 && g.one(2) {
				out = "rep.Replace(" + e("string") + ")"
			}
		}
		if errs := g.visible("error!", false); len(errs) > 0 {
			out = pick(g, errs...).name + ".Error()"
		}
		return out
	case "bool":
		t := pick(g, "int", "float64", "string")
		return pick(g,
			g.variable(t)+pick(g, " < ", " <= ", " == ", " != ", " > ", " >= ")+e(t),
			e(t)+pick(g, " < ", " == ")+g.variable(t), "("+g.test(d)+pick(g, " && ", " || ")+g.test(d)+")",
			g.test(d)+pick(g, " && ", " || ")+g.variable("bool"), "!"+g.variable("bool"),
			"("+g.variable("bool")+pick(g, " == ", " != ")+g.name("bool", "false")+")",
			g.variable("rune")+pick(g, " >= ", " == ", " != ")+e("rune"),
			g.variable("string")+"[0]"+pick(g, " > ", " == ")+g.literal("byte"),
			g.name("any", g.anySource())+pick(g, " == nil", " != nil"),
			g.name("error", "errors.New(\"z\")")+pick(g, " == nil", " != nil"),
			g.name(pick(g, "[]int", "map[string]any", "[]any", "map[string]int"), "[]string{}")+pick(g, " == nil",
				" != nil"),
			"strings.Contains("+e("string")+", "+e("string")+")", "strings.HasPrefix("+e("string")+", "+
				g.literal("string")+")", "unicode.IsLetter("+e("rune")+")",
			"unicode.IsDigit("+e("rune")+") || "+g.test(d), g.name("map[string]bool", "map[string]bool{}")+"["+
				e("string")+"]", "math.IsNaN("+e("float64")+")",
			"errors.Is("+e("error")+", "+e("error")+")", g.name("[]bool", "[]bool{true}")+"[0]",
			"len("+g.variable("string")+") > "+g.variable("int"))
	case "rune":
		return pick(g, "unicode.ToUpper("+e("rune")+")", "unicode.ToLower("+e("rune")+")",
			g.name("[]rune", "[]rune{'r', 's'}")+"[0]")
	case "byte":
		s := g.variable("string")
		return s + pick(g, "[0]", "[len("+s+")-1]", "["+e("int")+"]")
	case "any":
		switch g.IntN(5) {
		case 0:
			return g.anySource()
		case 1:
			return "nil"
		case 2:
			return g.index("[]any", "any")
		case 3:
			return g.container(pick(g, "[]int", "[]any", "map[string]any", "[]string", "map[string]int"), min(d, 1))
		}
		return g.expr(pick(g, "int", "float64", "string", "bool", "rune", "byte", "[]int", "[]string",
			"map[string]int"), d)
	case "error":
		return pick(g, "nil", "nil", g.composed("error!", d))
	case "error!":
		return pick(g, "errors.New("+e("string")+")", "fmt.Errorf(\"bad %v\", "+e("any")+")",
			"fmt.Errorf(\"w: %w\", "+e("error!")+")", "recurgent.Fail(\"kind\", "+e("string")+")")
	case "[]any":
		if g.inRun() && g.one(3) {
			return "call.Args"
		}
		return g.container(typ, min(d, 1))
	case "map[string]any":
		if g.inRun() && g.one(3) {
			return pick(g, "call.Kwargs", "call.Context")
		}
		return g.container(typ, min(d, 1))
	case "[]string":
		out := pick(g, "strings.Fields("+e("string")+")", "strings.Split("+e("string")+", "+g.literal("string")+")",
			g.container(typ, 1), g.slice(typ), g.container(typ, 1))
		if len(g.visible("*regexp.Regexp", false)) > 0 && g.one(2) {
			out = pick(g, "re.FindAllString("+e("string")+", -1)", "re.FindStringSubmatch("+e("string")+")")
		}
		if g.one(5) {
			out = g.name("map[string][]string", "map[string][]string{}") + "[" + e("string") + "]"
		}
		return out
	case "[]int", "[]float64", "[][]int":
		if g.loops == 0 && g.one(4) {
			return "append(" + g.expr(typ, 0) + ", " + g.expr(strings.TrimPrefix(typ, "[]"), 1) + ")"
		}
		if typ == "[][]int" && g.one(5) && g.loops == 0 {
			return "append(" + g.expr(typ, 0) + ", " + g.expr("[]int", 1) + ", " + g.expr("[]int", 1) + ")"
		}
		if typ == "[]int" && g.one(5) {
			return g.index("[][]int", "[]int")
		}
		return pick(g, g.container(typ, 1), g.slice(typ))
	}
	return g.container(typ, min(d, 1))
}

// name returns a variable of the type, or the other text if there is none.
func (g *generator) name(typ, other string) string {
	if vs := g.visible(typ, false); len(vs) > 0 {
		return pick(g, vs...).name
	}
	return other
}

// variable returns a variable of the type that is not constant, or a call that returns such a value.
func (g *generator) variable(typ string) string {
	if vs := g.visible(typ, true); len(vs) > 0 {
		return pick(g, vs...).name
	}
	switch typ {
	case "int":
		return "len(strings.Fields(" + g.literal("string") + "))"
	case "string":
		return "strings.ToLower(" + g.literal(typ) + ")"
	case "bool":
		return "strings.Contains(" + g.literal("string") + ", \"a\")"
	case "rune":
		return "unicode.ToLower(" + g.literal(typ) + ")"
	}
	return "math.Abs(" + g.literal(typ) + ")"
}

// test writes a condition that is not constant.
func (g *generator) test(depth int) string {
	if depth <= 0 || g.one(4) {
		return g.variable("bool")
	}
	return g.composed("bool", depth-1)
}

// index reads an element, in most cases one that exists.
func (g *generator) index(typ, elem string) string {
	s := g.name(typ, "")
	if s == "" {
		return g.literal(elem)
	}
	return s + pick(g, "[0]", "[len("+s+")-1]", "["+g.expr("int", 0)+"]")
}

func (g *generator) slice(typ string) string {
	s := g.name(typ, "")
	if s == "" {
		return g.literal(typ)
	}
	return s + pick(g, "[:]", "[0:]", "[:len("+s+")/2]", "[len("+s+"):]", "[1:]")
}

func (g *generator) cut() string {
	s := g.variable("string")
	return s + pick(g, "[:]", "[:len("+s+")/2]", "[len("+s+")/2:]", "[1:]", "[:2]")
}

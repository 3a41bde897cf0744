// Package generate writes random Go programs for the differential tests. A program declares types, applies operations
// of the language and the standard library to them, and returns a log of the results. The log contains no addresses and
// does not depend on the order of maps, so every engine must return the same log.
//
// The same seed writes the same program. Only tests import this package.
package generate

import (
	"fmt"
	"go/types"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/tools/go/types/typeutil"
)

// mark ends every package-level name, so many programs can be compiled as one native package.
const mark = "ø"

// A Program is a generated program.
type Program struct {
	Seed uint64
	Main string // name of the function that does the work: func Main(call *recurgent.Call) (any, error)
	Text string // a file of package tool, without a function Run

	Operations []string // topics of its sections: "json of map", "flow"
}

// Source returns the program with a function Run, as the gate expects it.
func (p Program) Source() string {
	return p.Text + "\nfunc Run(call *recurgent.Call) (any, error) { return " + p.Main + "(call) }\n"
}

// maxText is the size limit of a program in bytes. The gate accepts 64 KiB.
const maxText = 60000

// Write returns the program for a seed. Seven of ten programs are about types, three about statements and values.
func Write(seed uint64) Program {
	for stream := uint64(11); ; stream++ {
		g := &gen{Rand: rand.New(rand.NewPCG(seed, stream)), makers: new(typeutil.Map), shows: new(typeutil.Map)}
		if seed%10 < 7 {
			g.declare()
			for range 6 + g.IntN(8) {
				g.operate()
			}
		} else {
			for range 6 + g.IntN(7) {
				g.plain()
			}
		}
		// A program that is too long is dropped, and another random stream of the same seed tried.
		if p := g.finish(seed); len(p.Text) < maxText {
			return p
		}
	}
}

// A gen writes one program.
type gen struct {
	*rand.Rand
	world
	makers   *typeutil.Map // types.Type -> name of the function that creates a value
	shows    *typeutil.Map // types.Type -> name of the function that prints a value as text
	funcs    []string      // functions and methods written so far
	sections []string      // the functions that Main calls, in order
	about    []string      // Operations of the program so far
	names    int           // number of fresh names so far
}

// percent returns true in n of 100 cases.
func (g *gen) percent(n int) bool          { return g.IntN(100) < n }
func pick[T any](g *gen, list ...T) T      { return list[g.IntN(len(list))] }
func (g *gen) fresh(prefix string) string  { g.names++; return prefix + strconv.Itoa(g.names) }
func (g *gen) add(format string, a ...any) { g.funcs = append(g.funcs, fmt.Sprintf(format, a...)) }

// section adds a function with this body, which Main calls.
func (g *gen) section(about, body string) {
	name := "s" + strconv.Itoa(len(g.sections)) + mark
	g.sections = append(g.sections, name)
	g.about = append(g.about, about)
	g.add("// %s\nfunc %s(r *rng%s) {\n%s}\n", about, name, mark, body)
}

// placeholder matches a part of a template; see fill.
var placeholder = regexp.MustCompile(`@(mk|sh)?([A-Z])\b`)

// fill expands a template: @T is the type bound to T, @mkT creates a value of it, and @shT is the function that prints
// one.
func (g *gen) fill(template string, bound map[string]types.Type) string {
	return placeholder.ReplaceAllStringFunc(template, func(s string) string {
		m := placeholder.FindStringSubmatch(s)
		t, ok := bound[m[2]]
		if !ok {
			panic("generate: nothing is bound to " + s + " in " + template)
		}
		switch m[1] {
		case "mk":
			return g.maker(t) + "(r, 2)"
		case "sh":
			return g.show(t)
		}
		return typeText(t)
	})
}

// typeText returns the text of a type as the program spells it.
func typeText(t types.Type) string {
	text := types.TypeString(types.Unalias(t), func(p *types.Package) string {
		if p.Path() == "tool" {
			return ""
		}
		return p.Name()
	})
	// Since Go 1.27 these are aliases of types in packages that programs cannot import.
	return strings.NewReplacer("jsontext.Value", "json.RawMessage", "jsontext.Options", "json.Options",
		"jsonopts.Options", "json.Options").Replace(text)
}

// finish puts the program together. Its names end with the seed instead of the mark.
func (g *gen) finish(seed uint64) Program {
	suffix := "q" + strconv.FormatUint(seed, 36)
	var b strings.Builder
	for _, d := range g.declared() {
		b.WriteString(d + "\n")
	}
	b.WriteString(strings.Join(g.funcs, "\n"))
	b.WriteString("\nvar sections" + mark + " = []func(*rng" + mark + "){" + strings.Join(g.sections, ", ") + "}\n")
	if len(g.pool) > 0 {
		b.WriteString(generics)
	}
	text := b.String()
	text = "package tool\n\n" + imports(text+prelude) + text + prelude
	return Program{Seed: seed, Main: "Main" + suffix, Text: strings.ReplaceAll(text, mark, suffix), Operations: g.about}
}

// imports writes the imports that a text needs: those of the packages whose names precede a dot and a capital letter.
func imports(text string) string {
	used := map[string]bool{}
	for i := range len(text) - 1 {
		if text[i] == '.' && 'A' <= text[i+1] && text[i+1] <= 'Z' {
			used[text[1+strings.LastIndexFunc(text[:i], notOfName):i]] = true
		}
	}
	var b strings.Builder
	for _, path := range importable {
		if used[path[strings.LastIndexByte(path, '/')+1:]] {
			fmt.Fprintf(&b, "\t%q\n", path)
		}
	}
	return "import (\n" + b.String() + ")\n\n"
}

// notOfName reports whether r cannot be part of an identifier.
func notOfName(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// importable lists the packages that generated programs use.
var importable = []string{"recurgent", "bufio", "bytes", "cmp", "container/heap", "container/list", "container/ring",
	"encoding/binary", "encoding/json", "encoding/xml", "errors",
	"fmt", "io", "iter", "maps", "math", "math/big", "math/bits", "net/netip", "reflect", "regexp", "slices", "sort",
	"strconv", "strings", "time", "unicode", "unicode/utf8"}

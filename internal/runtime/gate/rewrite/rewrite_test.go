package rewrite

import (
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// Functions that read the clock, randomness or a terminal are replaced, and nothing else of these packages.
func TestReplacements(t *testing.T) {
	t.Parallel()
	imp, err := std.Importer()
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{ // functions of each package that stay the toolchain's
		"time":         "Date FixedZone LoadLocationFromTZData Parse ParseDuration ParseInLocation Unix UnixMicro UnixMilli",
		"math/rand":    "New NewSource NewZipf",
		"math/rand/v2": "New NewChaCha8 NewPCG NewZipf",
		"crypto/rand":  "Int Prime", // these take their reader from the program, which has ours
		"fmt":          "Append Appendf Appendln Errorf FormatString Fprint Fprintf Fprintln Fscan Fscanf Fscanln Sprint Sprintf Sprintln Sscan Sscanf Sscanln",
	}
	for path, names := range own {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		allowed, _ := allow.Find(path)
		for _, name := range pkg.Scope().Names() {
			f, ok := pkg.Scope().Lookup(name).(*types.Func)
			if !ok || !f.Exported() || !allowed.Shows(name) {
				continue
			}
			if replaced := replacement(path, name, f) != ""; replaced == slices.Contains(strings.Fields(names), name) {
				t.Errorf("%s.%s: replaced %t", path, name, replaced)
			}
		}
	}
}

func textOf(t *testing.T, source string) (string, error) {
	t.Helper()
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, refusal := g.Check(source)
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	return Text(p, source)
}

const run = "\nfunc Run(call *recurgent.Call) (any, error) { return nil, nil }\n"

// An unexported type that a program can obtain is the type of something that its package exports.
func TestKeptTypesAreExported(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"binary.BigEndian", "binary.LittleEndian", "binary.NativeEndian",
		"unicode.CaseRange{}.Delta"} {
		text, err := textOf(t, "package tool\nimport (\"encoding/binary\"; \"unicode\")\nvar _, _ = binary.BigEndian, unicode.MaxRune\nfunc list[T any](v ...T) []T { return v }\nvar all = list("+kept+")"+run)
		if err != nil || !strings.Contains(text, "RecurgentNativeZero1(RecurgentNativeImport0."+
			kept[strings.Index(kept, ".")+1:]+")") {
			t.Errorf("%s: got %v %s", kept, err, text)
		}
	}
}

// A text has no comments, so it has no directives, and package variables have no values before the first run.
func TestNoDirectives(t *testing.T) {
	t.Parallel()
	text, err := textOf(t, "package tool\n// a comment\nvar x = f() /* another */\n\n//line /etc/passwd:1\nfunc f() int { return 1 } // one more\n"+run)
	if err != nil {
		t.Fatal(err)
	}
	code, _, _ := strings.Cut(text, "var RecurgentNativeProgram")
	for line := range strings.Lines(code) {
		if strings.Contains(line, "passwd") || strings.Contains(line, "comment") || strings.Contains(line, "/*") {
			t.Errorf("got %s", line)
		}
		if at, ok := strings.CutPrefix(line, "//"); ok && !strings.HasPrefix(at, "line program.go:") {
			t.Errorf("got %s", line)
		}
		if strings.HasPrefix(line, "var") && strings.Contains(line, "=") {
			t.Errorf("got %s", line)
		}
	}
}

// A product or quotient that may become part of another operation is rounded explicitly, whatever the name of its type,
// and nothing is evaluated twice.
func TestProductsAreRounded(t *testing.T) {
	t.Parallel()
	const head = "package tool\n\nimport \"recurgent\"\n\ntype (\n\tmass float64\n\tmassAgain = mass\n\twave complex64\n)\n\nfunc two() int { return 2 }\n\n"
	for body, want := range map[string]string{
		"func f(x, y float64) float64 { return x*y + 1 }":                               "RecurgentNativeSupport.Float64(x*y) + 1",
		"func f(x, y float32) float32 { return 1 - x/y }":                               "1 - RecurgentNativeSupport.Float32(x/y)",
		"func f(x mass) mass { return x * 2 * x }":                                      "RecurgentNativeSupport.Rounded(RecurgentNativeSupport.Rounded(x*2) * x)",
		"func f(x massAgain) float64 { return float64(x * x) }":                         "float64(RecurgentNativeSupport.Rounded(x * x))",
		"func f(x, y wave) wave { return x*y + x/y }":                                   "RecurgentNativeSupport.Product(x, y) + RecurgentNativeSupport.Quotient(x, y)",
		"func f[T ~int | ~float64](x T) T { return x*x + 1 }":                           "RecurgentNativeSupport.Rounded(x*x) + 1",
		"func f[T ~float32 | ~complex128](x T) T { return x/x + 1 }":                    "RecurgentNativeSupport.QuotientOf(x, x) + 1",
		"func f[T interface{ ~int | ~int8 }](x T) T { return x*x + 1 }":                 "return x*x + 1",
		"func f(x, y int) int { return x*y/3 + 1 }":                                     "return x*y/3 + 1",
		"func f(x float64) float64 { const half = 1.0 / 2; return half*3.5 + x }":       "return half*3.5 + x",
		"func f(x, y float64) float64 { x *= y + 1; return x }":                         "x = RecurgentNativeSupport.Float64(x * (y + 1))",
		"func f(x []mass, i int) { x[i-1] /= 3 }":                                       "x[i-1] = RecurgentNativeSupport.Rounded(x[i-1] / (3))",
		"func f(x []mass) { for x[two()] *= 3; x[0] > 1; x[two()] /= 3 {} }":            "RecurgentNativeSupport.Multiply(&x[two()], 3)",
		"func f(x map[any]float64) { if x[two()] /= 3; x[1] > 2 {} }":                   "RecurgentNativeSupport.In(x).Divide(two(), 3)",
		"func f(x *struct{ y wave }) { x.y *= 2 }":                                      "x.y = RecurgentNativeSupport.Product(x.y, (2))",
		"func f(x int) int { x *= 2; return x }":                                        "x *= 2",
		"func f(float64 int) (x float32) { type Float64 int; return x*x + x }":          "RecurgentNativeSupport.Float32(x*x) + x",
		"var product = []float64{half * half, half}\nvar half = 0.5 + float64(two())\n": "{RecurgentNativeSupport.Float64(half * half), half}",
		"func f(x ...float64) { x[len(x)-1] *= x[0] }":                                  "x[len(x)-1] = RecurgentNativeSupport.Float64(x[len(x)-1] * (x[0]))",
		"func f(x map[mass]float64, y chan mass) { x[<-y*2] *= 2 }":                     "RecurgentNativeSupport.In(x).Multiply(RecurgentNativeSupport.Rounded(<-y*2), 2)",
	} {
		text, err := textOf(t, head+body+"\n"+run)
		if err != nil {
			t.Errorf("%s\ngot %v", body, err)
		} else if code, _, _ := strings.Cut(text, "var RecurgentNativeProgram"); !strings.Contains(code, want) {
			t.Errorf("%s\ngot %s\nwant %s", body, code, want)
		}
	}
}

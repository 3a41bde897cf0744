package rewrite

import (
	"errors"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// What reads the clock, randomness or a terminal is replaced, and nothing else of these packages is.
func TestReplacements(t *testing.T) {
	t.Parallel()
	imp, err := std.Importer()
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{ // those that are the toolchain's, among the functions of each package
		"time":         "Date FixedZone LoadLocationFromTZData Parse ParseDuration ParseInLocation Unix UnixMicro UnixMilli",
		"math/rand":    "New NewSource NewZipf",
		"math/rand/v2": "New NewChaCha8 NewPCG NewZipf",
		"crypto/rand":  "Int Prime", // which take their reader from the program, and that is ours
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

// Programs that the text cannot give the engine's answers stay on the engine.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for source, why := range map[string]string{
		"package tool\nimport \"encoding/binary\"\nfunc same[T any](v T) T { return v }\nvar order = same(binary.LittleEndian)" + run: "no package exports",
		"package tool\nvar RecurgentNativeX = 1" + run: "names that begin with",
		"package tool\ntype b bool\nfunc f() chan b { return nil }\nfunc g(n int) { select { case f() <- (n == 1): case <-f(): } }" + run: "takes its type from",
		"package tool\ntype string int\nvar x = len(\"\")" + run:                                                                          "declares the type string anew",
	} {
		_, err := textOf(t, source)
		if _, ok := errors.AsType[Unsupported](err); !ok || !strings.Contains(err.Error(), why) {
			t.Errorf("%s\ngot %v, want %s", source, err, why)
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

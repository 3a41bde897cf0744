package rewrite

import (
	"errors"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/symbols"
)

// What the engine gives programs in its own way, the text gives them in its own way too.
func TestReplacements(t *testing.T) {
	t.Parallel()
	natives, found := symbols.NewNatives(rt.New()), 0
	for _, p := range allow.Packages() {
		for name := range symbols.Table(p.Path) {
			if _, ok := natives.Find(p.Path, name); !ok || p.Path == "crypto/rand" && name == "Int" { // which takes its reader from the program, and that is ours
				continue
			}
			found++
			if replacement(p.Path, name, types.NewFunc(token.NoPos, nil, name, nil)) == "" {
				t.Errorf("%s.%s is the toolchain's own", p.Path, name)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d natives", found)
	}
}

func textOf(t *testing.T, source string) (string, error) {
	t.Helper()
	g, err := gate.New(gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, refusal := g.CheckAsWritten(source)
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
		"package tool\nvar RecurgentNativeX = 1" + run:                                                          "names that begin with",
		"package tool\nvar n int\nfunc f() int { n++; return n }\nvar all = []int{n, f()}" + run:                "order of evaluation",
		"package tool\nfunc f() chan int { return nil }\nfunc g() { select { case <-f(): case <-f(): } }" + run: "select",
		"package tool\ntype string int\nvar x = len(\"\")" + run:                                                "declares the type string anew",
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

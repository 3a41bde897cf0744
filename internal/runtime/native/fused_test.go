package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/corpus"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/generate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/rewrite"
	"github.com/recurgentd/recurgentd/internal/runtime/native/carried"
)

// sums is a program with products and quotients of all kinds of numbers in sums, which compilers for arm64 fuse.
const sums = `package tool

import (
	"math"

	"recurgent"
)

type mass float64

type wave complex128

type number interface{ ~int | ~float32 | ~float64 | ~complex128 }

func sum[T number](x, y, z T) T { return x*y + z - x/y }

func next(n *int) int { *n++; return *n - 1 }

func product(x, y float64) float64 { return x * y }

func halves(x, z float64) float64 { return x/2 + z }

func squares(all []float64) (n float64) {
	for _, a := range all {
		n += a * a
	}
	return n
}

func inPlace(all []float64, waves map[string]wave) (float64, wave) {
	at := 0
	for all[next(&at)] *= 3; all[0] > 1; all[0] /= 4 {
		waves["a"] *= 2 + 1i
		waves["b"+string(rune('0'+next(&at)))] /= 3i
	}
	k := all[2]
	k *= all[1]
	return k + all[3] - all[2]*all[1], waves["a"]*waves["a"] + waves["b1"]
}

func Run(call *recurgent.Call) (any, error) {
	all := []float64{0.1, 10, -1, 1e-300, 1 / 3.0}
	for _, a := range call.Args {
		if f, ok := a.(float64); ok {
			all = append(all, f)
		}
	}
	x, y, z := all[0], all[1], all[2]
	k, w := inPlace(all, map[string]wave{"a": 0.1 + 10i})
	bits := []uint64{}
	for _, f := range []float64{x*y + z, z - x*y, product(x, y) + z, halves(x, z), squares(all), sum(x, y, z), float64(sum(mass(x), 3, 4)), real(sum(complex(x, y), 1i, 2)), real(w), imag(w), k,
		float64(float32(x)*float32(y) + float32(z)), real(complex(x, y)*complex(y, z) + 1), imag(complex(x, y) / complex(y, z)), math.Sin(x), math.Pow(x, y) * z} {
		bits = append(bits, math.Float64bits(f))
	}
	return []any{bits, sum(1, 2, 3)}, nil
}
`

// A compiler for arm64 fuses multiplications with additions, but none of a program's, even without the flags with which
// packages are compiled.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() {
		t.Skip("long: compiles packages for arm64")
	}
	all, err := corpus.Read("../gate/diff/testdata/corpus")
	if err != nil {
		t.Fatal(err)
	}
	sources := []string{sums}
	for i := 0; i < len(all); i += 60 {
		sources = append(sources, all[i].Source)
	}
	for seed := range uint64(5) {
		p := generate.Write(seed + 1)
		sources = append(sources, p.Source())
	}
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, source := range sources {
		if p, refusal := g.Check(source); refusal == nil {
			text, err := rewrite.Text(p, source)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	if len(texts) < 10 {
		t.Fatalf("only %d of %d programs have a text", len(texts), len(sources))
	}
	multiplied := 0
	for i, code := range codeFor(t, "arm64", texts) {
		multiplied += strings.Count(code, "FMULD")
		for line := range strings.Lines(code) {
			if strings.HasPrefix(strings.TrimSpace(line), "program.go:") && fused.MatchString(line) {
				t.Errorf("program %d: %s", i, line)
			}
		}
	}
	if multiplied < 50 {
		t.Errorf("only %d multiplications were seen", multiplied)
	}
}

var fused = regexp.MustCompile(`\bFN?M(ADD|SUB)[SD]\b`)

// codeFor returns the machine code of the texts for a processor, disassembled.
func codeFor(t *testing.T, processor string, texts []string) (code []string) {
	t.Helper()
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	args := []string{"list", "-export", "-overlay", filepath.Join(dir, "overlay.json"), "-f", "{{.Export}}"}
	for i, text := range texts {
		for _, path := range allow.Packages() {
			text = strings.Replace(text, fmt.Sprintf("%q\n", path.Path), fmt.Sprintf("%q\n", allow.TruePath(path.Path)),
				1)
		}
		name := fmt.Sprintf("tool%d", i)
		file := filepath.Join(dir, name+".go")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(here, name, "program.go")] = file
		args = append(args, "./"+name)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(append(os.Environ(), carried.Settings...), "GOOS=linux", "GOARCH="+processor)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	for archive := range strings.Lines(string(out)) {
		dump, err := exec.CommandContext(t.Context(), "go", "tool", "objdump", strings.TrimSpace(archive)).Output()
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, string(dump))
	}
	return code
}

package yaegi_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/yaegi"
)

// The allocations of loops grow as natively: when n doubles they at most double, with some tolerance for growth in
// steps. If yaegi copies a whole string or slice at each step, they grow four times.
func TestLoopsGrowAsNatively(t *testing.T) {
	const n = 1024
	for name, body := range map[string]string{
		"for cond":     "i := 0\nfor i < n { x += i; i++ }",
		"for three":    "for i := 0; i < n; i++ { x += i }",
		"for ever":     "i := 0\nfor { i++; if i > n { break }; x += i }",
		"nested":       "for i := 0; i < n; i++ { for j := 0; j < 4; j++ { if j == 2 { continue }; x += j } }",
		"ints":         "s := make([]int, n)\nfor i, v := range s { s[i] = v + i; x += s[i] }",
		"strings":      "s := make([]string, n)\nfor i := range s { s[i] = strconv.Itoa(i) }\nfor _, v := range s { x += len(v) }",
		"floats":       "s := make([]float64, n)\nfor i, v := range s { s[i] = v + float64(i); x += int(s[i]) }",
		"values":       "s := make([]any, n)\nfor i, v := range s { if v == nil { s[i] = i } }",
		"slices":       "s := make([][]int, n)\nfor i := range s { s[i] = []int{i}; x += s[i][0] }",
		"append":       "s := []int{}\nfor i := 0; i < n; i++ { s = append(s, i) }\nx = len(s)",
		"append many":  "s := []string{}\nfor i := 0; i < n; i++ { s = append(s, \"a\", \"b\") }\nx = len(s)",
		"map":          "m := map[int]string{}\nfor i := 0; i < n; i++ { m[i] = \"a\" }\nx = len(m)",
		"map of lists": "m := map[int][]int{}\nfor i := 0; i < n; i++ { m[i % 16] = append(m[i % 16], i) }\nx = len(m)",
		"count":        "m := map[string]int{}\nfor i := 0; i < n; i++ { m[strconv.Itoa(i % 8)]++ }\nx = m[\"1\"]",
		"delete":       "m := map[int]int{}\nfor i := 0; i < n; i++ { m[i] = i; delete(m, i - 8) }\nx = len(m)",
		"bytes":        "s := strings.Repeat(\"ab \", n)\nfor i := 0; i < len(s); i++ { if s[i] == ' ' { x++ } }",
		"substrings":   "s := strings.Repeat(\"ab \", n)\nfor len(s) > 3 { s = s[3:]; x++ }",
		"subslices":    "s := make([]int, n)\nfor len(s) > 1 { s = s[1:]; x++ }",
		"builder":      "var b strings.Builder\nfor i := 0; i < n; i++ { b.WriteString(\"ab\"); x += b.Len() }",
		"fields":       "s := strings.Fields(strings.Repeat(\"ab \", n))\nfor i, f := range s { x += len(f) + i }",
		"calls":        "for i := 0; i < n; i++ { x = add(x, i) }",
	} {
		t.Run(name, func(t *testing.T) {
			p := check(t, fmt.Sprintf(
				"package tool\n\nfunc add(a, b int) int { return a + b }\n\nfunc Run(call *recurgent.Call) (any, error) {\n\tsize, ok := call.Arg(0, \"n\").(float64)\n\tif !ok {\n\t\treturn nil, nil\n\t}\n\tn := int(size)\n\tx := 0\n%s\n\treturn add(x, n), nil\n}\n", body))
			if why := gate.WhyNotYaegi(p); why != "" {
				t.Fatalf("not on yaegi: %s", why)
			}
			one, two := allocated(t, p, n), allocated(t, p, 2*n)
			if grown := float64(two) / float64(max(one, 32<<10)); grown > 2.5 {
				t.Errorf("what is allocated grows %.2f times, from %d to %d", grown, one, two)
			}
		})
	}
}

// allocated returns the number of bytes that a run with n allocates.
func allocated(t *testing.T, p *gate.Program, n int) uint64 {
	c, err := yaegi.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	pr := program{}
	pr.add(t, fmt.Sprintf("[%d]", n))
	run(t, c, pr.calls[0])
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := run(t, c, pr.calls[0])
	runtime.ReadMemStats(&after)
	if out.Error != "" || out.Panic {
		t.Fatalf("%+v", out)
	}
	return after.TotalAlloc - before.TotalAlloc
}

// Ranges over strings do not run on yaegi, which would convert the whole string at each step.
func TestRangesOverStringsStayAway(t *testing.T) {
	for _, loop := range []string{"for _, r := range s { n += int(r) }", "for i := range s { n += i }",
		"for i, r := range s { n += i + int(r) }", "for range s { n++ }"} {
		p := check(t, "package tool\n\nfunc Run(call *recurgent.Call) (any, error) {\n\ts := \"ab\"\n\tn := 0\n"+loop+
			"\n\treturn n + len(s), nil\n}\n")
		if gate.WhyNotYaegi(p) == "" {
			t.Errorf("%s is run", loop)
		}
	}
}

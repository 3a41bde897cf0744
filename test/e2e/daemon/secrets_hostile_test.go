package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// Large answers made of the letters of long secrets: masking takes a time that grows with the answer alone, in the
// caller's share, so that each call ends and another owner's go on meanwhile. In a time that grows with both, one of
// them takes minutes.
func TestLongSecretsInLargeAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it masks 30 MB")
	}
	t.Parallel()
	d, _ := three(t, nil)
	op, ann, ben := d.As(tokenOp), d.As(tokenAnn), d.As(tokenBen)
	op.Do(http.StatusOK, http.MethodPut, "/v1/tools/big/methods/out",
		map[string]any{"code": rig.Program(
			"\tn, _ := call.Arg(1, \"n\").(float64)\n\ts := call.Arg(0, \"s\").(string)\n\treturn strings.Repeat(s, int(n)/len(s)), nil", "strings")})
	op.Do(http.StatusOK, http.MethodPut, "/v1/tools/calculator/methods/add", map[string]any{"code": rig.ProgAdd})
	const size = 3 << 20
	secrets := map[string]string{"one letter": strings.Repeat("a", 60_000) + "-b",
		"two letters": strings.Repeat("ab", 30_000) + "c", "letters and digits": strings.Repeat("a1", 30_000) + "!"}
	answers := []string{"a", "ab", "a1", "%61", "&#97;", "\\u0061", "YWFh"}
	session := ben.Session("calculator")
	for kind, secret := range secrets {
		for i, answer := range answers {
			if i > 2 && kind != "one letter" {
				continue
			}
			got := ann.Invoke(ann.Session("big"), map[string]any{"method": "out", "args": []any{answer, size},
				"kwargs": map[string]any{"password": secret}})
			value, _ := got.Outcome.Value.(string)
			if !got.Outcome.OK || !strings.HasPrefix(value, answer) || len(value) < size-10 {
				t.Errorf("%s in %q: %s %s, %d bytes", kind, answer, got.Outcome.ErrorType, got.Outcome.ErrorMessage,
					len(value))
			}
			ben.WantValue(ben.Call(session, "add", i, 1), i+1, "persisted")
		}
	}
	for i := range 2 {
		short := ann.Invoke(ann.Session("big"), map[string]any{"method": "out", "args": []any{"a", size},
			"kwargs": map[string]any{"password": secrets["one letter"]}, "timeout_ms": 1 + 400*i})
		if o := short.Outcome; !o.OK && o.ErrorType != "timeout" {
			t.Errorf("with little time: %+v", o)
		}
	}
}

// Values and contracts that are made to cost: each call ends, with an answer, a violation or at its deadline, and
// another owner's go on meanwhile.
func TestHostileValuesUnderContracts(t *testing.T) {
	if testing.Short() {
		t.Skip("it checks some megabytes")
	}
	t.Parallel()
	d, _ := three(t, nil)
	op, ann, ben := d.As(tokenOp), d.As(tokenAnn), d.As(tokenBen)
	op.Do(http.StatusOK, http.MethodPut, "/v1/tools/calculator/methods/add", map[string]any{"code": rig.ProgAdd})
	trees := "\tall := map[int][]any{0: {[]any{}}}\n\tfor n := 1; n < 12; n++ {\n\t\tfor first := 0; first < n; first++ {\n\t\t\tfor _, a := range all[first] {\n\t\t\t\tfor _, b := range all[n-1-first] {\n" +
		"\t\t\t\t\tall[n] = append(all[n], append([]any{a}, b.([]any)...))\n\t\t\t\t}\n\t\t\t}\n\t\t}\n\t}\n\treturn all[11], nil"
	for i, c := range []struct{ name, program, deliverable string }{
		{"alike to a hash", trees, `{"uniqueItems": true}`},
		{"below a long key", "\treturn map[string]any{strings.Repeat(\"k\", 1<<20): make([]int, 400_000)}, nil",
			`{"additionalProperties": {"items": {"type": "number"}}}`},
		{"many alternatives", "\treturn make([]int, 300_000), nil",
			`{"items": {"anyOf": [{"type": "string"}, {"type": "null"}, {"const": 1}, {"minimum": 0}]}}`},
	} {
		role := fmt.Sprint("hostile", i)
		imports := []string{}
		if strings.Contains(c.program, "strings.") {
			imports = append(imports, "strings")
		}
		op.Do(http.StatusOK, http.MethodPut, "/v1/tools/"+role+"/methods/out",
			map[string]any{"code": rig.Program(c.program, imports...)})
		op.Send(http.MethodPut, "/v1/tools/"+role, []byte(`{"deliverable": `+c.deliverable+`}`),
			map[string]string{"Content-Type": "application/json"})
		for _, limit := range []int{2000, 60_000} {
			got := ann.Invoke(ann.Session(role), map[string]any{"method": "out", "timeout_ms": limit})
			if o := got.Outcome; !o.OK && o.ErrorType != "timeout" && o.ErrorType != "contract_violation" {
				t.Errorf("%s: %s %s", c.name, o.ErrorType, o.ErrorMessage)
			}
			ben.WantValue(ben.Call(ben.Session("calculator"), "add", i, 1), i+1, "persisted")
		}
	}
}

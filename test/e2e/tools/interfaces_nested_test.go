package tools

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// passesOn is a program that makes a call of pair.of, and passes its error on, by its type or as an error of its own.
func passesOn(args, failed string) string {
	return rig.Program("\to := call.Tool(\"pair\").CallWith(\"of\", "+args+
		", nil)\n\tif o.Status != \"ok\" {\n\t\treturn nil, "+failed+"\n\t}\n\treturn o.Value, nil", "fmt")
}

// A program whose own call of another one does not fit is at fault, whoever calls it, and is repaired at once. One that
// hands on what it was called with is not.
func TestProgramsAnswerForTheirOwnCalls(t *testing.T) {
	t.Parallel()
	const typed, plain = "recurgent.Fail(o.ErrorType, fmt.Sprint(o.ErrorMessage))",
		"fmt.Errorf(\"no: %s\", o.ErrorMessage)"
	m := rig.NewModel(t, rig.Script{"pair.of": {declares(joins("a", "b"), "a", "b")},
		"asks.more":  {passesOn("[]any{1, 2, 3}", typed), passesOn("[]any{1, 2}", typed)},
		"asks.fewer": {passesOn("[]any{1}", plain), passesOn("[]any{1, 2}", plain)},
		"asks.same":  {passesOn("call.Args", typed)}})
	d := rig.Start(t, m)
	d.WantValue(d.Call(d.Session("pair"), "of", 1, 2), []any{1.0, 2.0}, "generated")
	s := d.Session("asks")
	for i, method := range []string{"more", "fewer"} {
		d.WantValue(d.Call(s, method), []any{1.0, 2.0}, "generated")
		d.WantValue(d.Call(s, method), []any{1.0, 2.0}, "persisted")
		if q := request(t, m, 2+2*i); !strings.Contains(q, "the arguments do not fit of(a: any, b: any)") {
			t.Errorf("%s: the request says nothing of the call:\n%s", method, q)
		}
	}
	d.WantValue(d.Call(s, "same", 1, 2), []any{1.0, 2.0}, "generated")
	for range 3 {
		got := d.Call(s, "same", 1)
		if d.WantError(got, "invalid_input"); !got.Outcome.Authored {
			t.Errorf("what the caller gave: %+v", got.Outcome)
		}
	}
	if a := d.Artifact("asks", "same"); a["failure_count"] != 0.0 || len(m.Requests()) != 6 {
		t.Errorf("%d requests, artifact: %v", len(m.Requests()), a)
	}
}

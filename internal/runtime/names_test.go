//go:build !scripted

package runtime

import (
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/sessions"
)

// A program's names are held to the same rules as a client's.
func TestProgramsNamesAreChecked(t *testing.T) {
	r, _ := newRuntime(t, map[string][]string{
		"r.calls":     {run("\to := call.Tool(\"ad\\u200bder\").Call(\"add\")\n\treturn o.ErrorType + \": \" + o.ErrorMessage, nil")},
		"r.method":    {run("\to := call.Tool(\"adder\").Call(\"a\\u202edd\")\n\treturn o.ErrorType + \": \" + o.ErrorMessage, nil")},
		"r.delegates": {run("\to := call.Delegate(\"ad\\u2066der\", recurgent.Contract{Purpose: \"adds\"}).Call(\"add\")\n\treturn o.ErrorType + \": \" + o.ErrorMessage, nil")}})
	_, call := conversation(t, r, sessions.Request{Role: "r"})
	for _, method := range []string{"calls", "method", "delegates"} {
		if got := string(call(method).Outcome.Value); !strings.HasPrefix(got, `"invalid_input: `) ||
			!strings.Contains(got, "invisible characters") {
			t.Errorf("%s: %s, want invalid_input", method, got)
		}
	}
	if tools, err := r.env.Store.ListTools(t.Context(), "", 10); err != nil || len(tools) != 1 { // r itself
		t.Errorf("%d tools are registered, %v", len(tools), err)
	}
}

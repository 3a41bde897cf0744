package store

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A preview is the beginning of the value's compact JSON, at most 80 characters, even if only the beginning of the
// outcome is available.
func TestPreview(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ö", 5000)
	for name, c := range map[string]struct{ value, want string }{
		"a number": {`5`, `5`}, "null": {`null`, `null`}, "a text": {`"a\nb"`, `"a\nb"`},
		"markup": {`"\u003cb\u003e"`, `"<b>"`}, "nested": {`{"value": {"value": [1,  2]}}`,
			`{"value":{"value":[1,2]}}`},
		"exactly as long": {`"` + long[:2*78] + `"`, `"` + long[:2*78] + `"`},
		"longer by one":   {`"` + long[:2*79] + `"`, `"` + long[:2*79] + `…`},
		"long":            {`"` + long + `"`, `"` + long[:2*79] + `…`},
		"a long list": {"[" + strings.Repeat("1,", 5000) + "1]",
			"[" + strings.Repeat("1,", 40)[:79] + "…"},
		"long, with escapes": {`"` + strings.Repeat(`\u003c`, 5000) + `"`, `"` + strings.Repeat("<", 79) + "…"},
	} {
		whole, err := json.Marshal(agent.Outcome{Status: agent.StatusOK, Value: json.RawMessage(c.value), ToolRole: "r",
			MethodName: "m"})
		if err != nil {
			t.Fatal(err)
		}
		if got := Preview(whole); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if got := Preview(whole[:min(len(whole), PreviewBytes)]); got != c.want {
			t.Errorf("%s, of the beginning: got %s, want %s", name, got, c.want)
		}
	}
	failed, err := json.Marshal(agent.Outcome{Status: agent.StatusError, ErrorType: "execution",
		ErrorMessage: `"value":5`, Metadata: map[string]any{"value": 5}})
	if err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{string(failed), ``, `5`, `{`, `{"status"`, `{"status":"ok","ok":true,"va`} {
		if got := Preview([]byte(none)); got != "" {
			t.Errorf("%s: got %s", none, got)
		}
	}
}

package agent

import (
	"encoding/json"
	"testing"
)

// Keywords get the form that the program's source uses. If the source uses normal form C, or lacks the keyword, they
// stay.
func TestAsWritten(t *testing.T) {
	t.Parallel()
	const apart, composed = "cafe\u0301", "caf\u00e9"
	for _, c := range []struct{ code, given, want string }{
		{`call.Kwargs["` + apart + `"]`, `{"` + composed + `":1,"b":"ü"}`, `{"b":"ü","` + apart + `":1}`},
		{`call.Kwargs["` + composed + `"]`, `{"` + composed + `":1}`, `{"` + composed + `":1}`},
		{`call.Kwargs["` + apart + composed + `"]`, `{"` + composed + `":1}`, `{"` + composed + `":1}`},
		{`call.Kwargs[name]`, `{"` + composed + `":1}`, `{"` + composed + `":1}`},
		{`"` + apart + `"`, `{"plain": "` + composed + `"}`, `{"plain": "` + composed + `"}`},
		{`"` + apart + `"`, `{}`, `{}`},
		{`"` + apart + `"`, ``, ``},
	} {
		if got := AsWritten(c.code, json.RawMessage(c.given)); string(got) != c.want {
			t.Errorf("%s of %s: got %s, want %s", c.given, c.code, got, c.want)
		}
	}
}

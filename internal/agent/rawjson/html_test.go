package rawjson

import "testing"

// Escapes for web pages become the characters. All other escapes stay, as does an escaped backslash before such a text.
func TestWithoutHTML(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"a\u003cb\u003E\u0026c"`: `"a<b>&c"`, `"\\u003c"`: `"\\u003c"`, `"\\\u003c"`: `"\\<"`,
		`"\u0022\u001b\u00e9\n"`: `"\u0022\u001b\u00e9\n"`, `"\u003`: `"\u003`, `\`: `\`, ``: ``,
	} {
		if got := string(WithoutHTML([]byte(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

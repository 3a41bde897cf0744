package agent

import (
	"strings"
	"testing"
)

func TestNamespaceValidate(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		string(DefaultNamespace): true, "a": true, "9": true, "team-1": true, strings.Repeat("a", 63): true,
		"": false, "-a": false, "a-": false, "-": false, "A": false, "a.b": false, "a/b": false, "..": false,
		"ä": false, "a b": false, strings.Repeat("a", 64): false,
	} {
		if got := Namespace(name).Validate() == nil; got != want {
			t.Errorf("%q: got valid %v, want %v", name, got, want)
		}
	}
}

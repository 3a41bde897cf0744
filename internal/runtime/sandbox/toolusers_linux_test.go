package sandbox

import "testing"

func TestUsersThatAreMapped(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n":               true,
		"0 100000 65536\n":                                 false,
		"0 100000 65536\n1879048192 1879048192 16777216\n": true,
		"0 100000 65536\n1879048192 1879048192 16777215\n": false,
		"0 1000 1\n1 100000 65536\n":                       false,
		"":                                                 false,
		"no map\n0 0 no\n":                                 false,
	} {
		if got := manyUsers.mapped(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
		if n := manyUsers.any(); n < manyUsers.first || n >= manyUsers.first+manyUsers.n {
			t.Errorf("user %d", n)
		}
	}
}

package inputs

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Names are those that the regular expression of the daemon matches.
func TestNames(t *testing.T) {
	parameter := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)
	random := rand.New(rand.NewPCG(1, 2))
	const letters = "azAZ_.-09@[`{/:\x00\xe1 é\n"
	names := []string{"", strings.Repeat("a", 64), strings.Repeat("a", 65)}
	for c := range 256 {
		names = append(names, string([]byte{byte(c)}), string([]byte{'a', byte(c)}))
	}
	for range 20000 {
		b := make([]byte, random.IntN(6))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		names = append(names, string(b))
	}
	for _, name := range names {
		if got, want := isName(name), parameter.MatchString(name); got != want {
			t.Errorf("parameter %q: got %t, want %t", name, got, want)
		}
	}
}

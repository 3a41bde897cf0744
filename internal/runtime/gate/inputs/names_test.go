package inputs

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Names are those of the regular expressions that the daemon uses.
func TestNames(t *testing.T) {
	plain, parameter := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,40}$`), regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	random := rand.New(rand.NewPCG(1, 2))
	const letters = "azAZ_.-09@[`{/:\x00\xe1 é\n"
	names := []string{"", strings.Repeat("a", 41), strings.Repeat("a", 42)}
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
		if got, want := plainName(name), plain.MatchString(name); got != want {
			t.Errorf("plain name %q: got %t, want %t", name, got, want)
		}
		if got, want := named(name, "_.-"), parameter.MatchString(name); got != want {
			t.Errorf("parameter %q: got %t, want %t", name, got, want)
		}
	}
}

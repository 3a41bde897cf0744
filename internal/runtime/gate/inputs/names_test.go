package inputs

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Names are those that the daemon accepts.
func TestNames(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("azAZ_.-09@[`{/:\x00\u00e1 \u00e9\n\u0301\u00a0\u200b\u2800\ufe0f\u202e\U000e0041\u3164\u2028\ufffd\U0010ffff%()\"")
	names := []string{"", strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("\u00e9", 32),
		strings.Repeat("\u00e9", 33), "\xe1"}
	for c := range rune(0x3100) {
		names = append(names, string(c), "a"+string(c))
	}
	for range 20000 {
		b := make([]rune, random.IntN(6))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		names = append(names, string(b))
	}
	for _, name := range names {
		f := &agent.Interface{Parameters: []agent.Parameter{{Name: name}}}
		if got, want := isName(name), f.Validate() == nil; got != want {
			t.Errorf("parameter %q: got %t, want %t", name, got, want)
		}
	}
}
